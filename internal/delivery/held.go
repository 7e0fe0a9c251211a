package delivery

import (
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/redo"
)

// heldReading is what a log holds of a sink that comes back: each object as the last id says.
type heldReading struct {
	reader  *redo.Reader
	sink    string
	streams []*change.Stream
	at      map[heldObject]int
	all     []checkpoint.Held
	err     error
}

type heldObject struct {
	stream string
	key    change.Key
	uid    string
}

func newHeldReading(reader *redo.Reader, sinkName string, streams []*change.Stream) *heldReading {
	return &heldReading{reader: reader, sink: sinkName, streams: streams, at: map[heldObject]int{}}
}

func (r *heldReading) take(text string) {
	if r.err != nil {
		return
	}
	id, stream, err := r.reader.OursIn(text, r.streams)
	if r.err = err; err != nil || stream == nil || !id.Op.OfObject() {
		return
	}
	r.add(&id, stream)
}

// add notes the object as the id says.
func (r *heldReading) add(id *change.ID, stream *change.Stream) {
	h := checkpoint.Held{
		Subscription: checkpoint.Subscription{Sink: r.sink, Stream: stream.String()},
		Entry:        change.Entry{Key: id.Key, UID: id.UID, ResourceVersion: id.ResourceVersion},
		Exists:       id.Op != change.Deleted, Ahead: id.Cluster,
	}
	of := heldObject{h.Stream, id.Key, id.UID}
	if at, known := r.at[of]; known {
		r.all[at] = h
		return
	}
	r.at[of] = len(r.all)
	r.all = append(r.all, h)
}
