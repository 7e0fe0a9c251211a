package delivery

import (
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/redo"
)

// A stream that is not configured any more may come back. Until then nobody reads it, and the marks go on. So what a
// sink's log holds of it after the mark, and what of it is on disk, is noted as that of a sink which is absent from
// this stream alone: when the stream is back, the sink is given a gap, what it has missed of deletes, and a full
// snapshot (I4). To a sink that does not take a stream any more, the stream is one that is not configured.

// unreadReading is what a log holds after the mark, and the saved state does not know, of streams that are not
// configured.
type unreadReading struct {
	*heldReading
	present []*change.Stream
	misses  map[string]bool // the streams that the sink is absent from: what is saved is not what it was told
	spooled map[change.ID]bool
}

// newUnreadReading begins one. It is nil where the state knows no such streams. The spooled are saved, and noted when
// they are left out of what comes from disk: what the log has of them must be known then.
func newUnreadReading(d *onDisk, reader *redo.Reader, spooled []*change.Record) (*unreadReading, error) {
	present := d.Recovery.Streams()
	names, err := d.store.Streams()
	if err != nil {
		return nil, err
	}
	var streams []*change.Stream
	for _, name := range names {
		if slices.ContainsFunc(present, func(s *change.Stream) bool { return s.String() == name }) {
			continue
		}
		stream, known, err := d.store.Resource(name)
		if err != nil {
			return nil, err
		}
		if known {
			streams = append(streams, &stream)
		}
	}
	if len(streams) == 0 {
		return nil, nil
	}
	mostNarrowFirst(streams)
	ids := map[change.ID]bool{}
	for _, rec := range spooled {
		ids[rec.ID(d.clusterUID)] = true
	}
	misses, err := d.absences()
	return &unreadReading{newHeldReading(reader, d.Name, streams), present, misses, ids}, err
}

// take takes the next id. One that another stream has taken over is for that.
func (r *unreadReading) take(text string) {
	if r.err != nil {
		return
	}
	id, stream, err := r.reader.OursIn(text, r.streams)
	if r.err = err; err != nil || stream == nil || !id.Op.OfObject() || redo.StreamOf(r.present, id) != nil {
		return
	}
	settled, err := r.reader.Settled(id, stream)
	if r.err = err; err != nil {
		return
	}
	_, known := r.at[heldObject{stream.String(), id.Key, id.UID}]
	if known || !settled || r.spooled[id] || r.misses[stream.String()] {
		r.add(&id, stream)
	}
}
