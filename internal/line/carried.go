package line

import (
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// defaultMarkLag is how many records a mark may lag. A mark that carries ids costs as many bytes as they have,
// compressed, so it is not saved with every batch; and what lies after a mark is read at the next start.
const defaultMarkLag = 4096

// maxCarried is how many bytes of ids a mark carries at most (I6), far more than those of all records that the line's
// window has room for, but for very long names. A mark that would carry more stays where it is, and more is read at the
// next start.
const maxCarried = 64 << 20

// idBytes is what an id has beside the names of its object, about.
const idBytes = 128

// carried are the records that lie before a mark in its sink's log and that may come again after a crash: they are not
// part of the saved state, as a rule because another sink has not taken them. With their ids beside it the mark need
// not wait for them (I3), so that no tail is longer than what the line's window holds and a little more (I6). A record
// that the sink rejected counts by its own id, not by that of the note in its place: it is told, as in this process.
type carried struct {
	found   []string         // ids that the log had when it was opened
	records []*change.Record // that were acknowledged since
	cluster string           // the uid, for their ids
	from    sink.Mark        // an earlier mark, which carries nothing
}

// state is what the state has of them: their ids, those of one object in the log's order. What was found may be named
// again by what was written since: the last place counts.
func (c *carried) state() checkpoint.Carried {
	ids := c.found
	for _, rec := range c.records {
		ids = append(ids, rec.ID(c.cluster).String())
	}
	known := make(map[string]struct{}, len(ids))
	at := len(ids)
	for _, id := range slices.Backward(ids) {
		if _, again := known[id]; again {
			continue
		}
		known[id] = struct{}{}
		at--
		ids[at] = id
	}
	return checkpoint.Carried{IDs: ids[at:], From: c.from}
}

// bytes is about how many the ids have.
func (c *carried) bytes() (n int) {
	for _, id := range c.found {
		n += len(id)
	}
	for _, rec := range c.records {
		n += idBytes + len(rec.Key.Namespace) + len(rec.Key.Name)
	}
	return n
}
