package delivery

import (
	"maps"
	"slices"

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

// withDisk is what the log holds of the streams' objects, with how the disk goes on. A delete there will be told. What
// the disk has of an object after its end undoes that: a restored etcd has the object again, and it ends once more.
func (d *onDisk) withDisk(held []checkpoint.Held, streams []*change.Stream) (all []checkpoint.Held, err error) {
	ends := map[heldObject]checkpoint.Held{}
	for _, h := range held {
		if h.Exists {
			all = append(all, h)
		} else {
			ends[heldObject{h.Stream, h.Entry.Key, h.Entry.UID}] = h
		}
	}
	err = d.eachSpooled(func(rec *change.Record) {
		of := heldObject{rec.Stream.String(), rec.Key, rec.UID}
		switch end, ended := ends[of]; {
		case !rec.Op.OfObject() || redo.StreamNamed(streams, of.stream) == nil:
		case ended && !isAfter(rec.ID(d.clusterUID), &end): // the log has it
		case rec.Op == change.Deleted:
			ends[of] = toldOnDisk(checkpoint.Subscription{Sink: d.Name, Stream: of.stream}, rec)
		default:
			delete(ends, of)
		}
	})
	return slices.AppendSeq(all, maps.Values(ends)), err
}

// isAfter says whether a record on disk is later than the object's end, which may be on disk itself.
func isAfter(id change.ID, end *checkpoint.Held) bool {
	switch {
	case end.OnDisk:
		return true
	case id.Cluster == end.Ahead:
		return change.CompareVersions(id.ResourceVersion, end.Entry.ResourceVersion) > 0
	}
	return change.EpochFound(id.Cluster).After(change.EpochFound(end.Ahead))
}

// toldOnDisk is a delete on disk, which the sink will be told.
func toldOnDisk(subscription checkpoint.Subscription, deleted *change.Record) checkpoint.Held {
	entry := change.Entry{Key: deleted.Key, UID: deleted.UID, ResourceVersion: deleted.ResourceVersion}
	return checkpoint.Held{Subscription: subscription, Entry: entry, OnDisk: true}
}
