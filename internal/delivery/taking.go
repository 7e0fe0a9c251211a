package delivery

import (
	"cmp"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/line"
	"github.com/kubecdc/kubecdc/internal/redo"
)

// taking finds out what the record proves. The state may be ahead of what the sink has, and then the rest is in line.
func (l *Listener) taking(rec *change.Record) (*redo.Taking, error) {
	now := &redo.Taking{ClusterUID: l.clusterUID, Old: query(l, (*fifo.Backlog).IsOld), Behind: query(l, (*fifo.Backlog).Behind)}
	var left []change.Entry
	l.Recovery.With(func(r *line.Recovery) { left = r.Log.Left(rec, l.clusterUID) })
	for _, entry := range left {
		known, err := l.knows(rec.Stream.String(), &entry)
		if err != nil {
			return nil, err
		}
		if !known {
			now.Gone = append(now.Gone, entry)
		}
	}
	if len(now.Gone) == 0 || !now.Behind {
		return now, nil
	}
	err := l.eachSpooled(func(waits *change.Record) {
		now.Gone = slices.DeleteFunc(now.Gone, func(entry change.Entry) bool {
			return waits.Sink == "" && waits.UID == entry.UID && waits.Key == entry.Key && waits.Stream.String() == rec.Stream.String()
		})
	})
	return now, err
}

// knows says whether the state has the object, or a record of it for all sinks is in line and not saved.
func (l *Listener) knows(stream string, object *change.Entry) (bool, error) {
	isSaved := func() (bool, error) {
		entry, found, err := l.store.Lookup(stream, object.Key)
		return found && entry.UID == object.UID, err
	}
	if saved, err := isSaved(); saved || err != nil {
		return saved, err
	}
	of := func(rec *change.Record) bool {
		return rec.Key == object.Key && rec.UID == object.UID && rec.Sink == "" && rec.Op.OfObject()
	}
	if l.Seat.Newest(stream, of) != nil {
		return true, nil
	}
	return isSaved() // by now
}

// appendGone puts the deletes of the sink-only objects into what is to be written before the record. Where that came of
// the watch and was merged with what a reconcile had found, the reconcile is the one of the frame.
func (l *Listener) appendGone(batch []*change.Record, gone []change.Entry, before *change.Record, frame *change.Snapshot) []*change.Record {
	for _, entry := range gone {
		rec := &change.Record{
			Stream: before.Stream, Op: change.Deleted, Key: entry.Key, UID: entry.UID, ResourceVersion: entry.ResourceVersion,
			Received: time.Now(), FinalStateUnknown: true, Aside: true, Snapshot: cmp.Or(before.Snapshot, frame), Sink: l.Name, Epoch: before.Epoch,
		}
		l.Recovery.With(func(r *line.Recovery) {
			r.Undeleted.Told(rec)
			r.Missed.Tells(rec)
		})
		if l.shape(rec); !rec.Filtered {
			batch = append(batch, rec)
		}
	}
	return batch
}
