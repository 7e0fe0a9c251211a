package pipeline

import (
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// defaultMarkLag is how many records a mark may lag. A mark that carries ids costs as many bytes as they have,
// compressed, so it is not saved with every batch; and what lies behind a mark is read at the next start.
const defaultMarkLag = 4096

// maxCarried is how many bytes of ids a mark carries at most (I6), far more than those of all records that the line's
// window has room for, but for very long names. A mark that would carry more stays where it is, and more is read at the
// next start.
const maxCarried = 64 << 20

// idBytes is what an id has beside the names of its object, about.
const idBytes = 128

// carried are the records that lie before a mark in its sink's log and that may come again after a crash: they are not
// part of the saved state, as a rule because another sink has not taken them. With their ids beside it the mark need
// not wait for them (I3), so that no tail is longer than what the line's window holds and a little more (I6).
type carried struct {
	found   []string         // ids that the log had when it was opened
	records []*change.Record // that were acknowledged since
	cluster string           // the uid, for their ids
	from    sink.Mark        // an earlier mark, which carries nothing
}

// all are the ids, those of one object in the log's order. What was found may be named again by what was written since:
// the last place counts.
func (c *carried) all() []string {
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
	return ids[at:]
}

// carry lets a mark that lags go on, with the ids of what keeps it back. While records are on disk it is not known, and
// the positions move on. The caller holds mu.
func (l *Line) carry(listener int, frontier uint64, last *part) {
	lst, point := l.listeners[listener], &l.resume[listener]
	seq, mark, ok := point.lags(l.markLag)
	if !ok || lst.spools() || lst.isBehind() {
		return
	}
	point.carryAt = seq + l.markLag
	var found []string
	lst.recovery.with(func(r *recovery) {
		if point.compared < frontier {
			r.log.Compared()
		}
		found, ok = r.log.Remaining()
	})
	if !ok {
		return
	}
	of, bytes := carried{found: found, cluster: lst.clusterUID, from: point.plain}, 0
	for _, id := range found {
		bytes += len(id)
	}
	for _, p := range l.streams {
		p.tracker.Written(listener, func(rec *change.Record) {
			of.records = append(of.records, rec)
			bytes += idBytes + len(rec.Key.Namespace) + len(rec.Key.Name)
		})
	}
	if bytes > l.mostCarried {
		return
	}
	l.mark(listener, mark, last)
	last.carried[lst.Name] = of
	point.carried(seq, mark)
}
