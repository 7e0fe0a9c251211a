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
func (p *past) taking(rec *change.Record) (*redo.Taking, error) {
	now := &redo.Taking{ClusterUID: p.clusterUID, Old: query(&p.intake, (*fifo.Backlog).IsOld), Behind: query(&p.intake, (*fifo.Backlog).Behind)}
	var left []change.Entry
	p.Recovery.With(func(r *line.Recovery) { left = r.Log.Left(rec, p.clusterUID) })
	for _, entry := range left {
		known, err := p.knows(rec.Stream.String(), &entry)
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
	err := p.eachSpooled(func(waits *change.Record) {
		now.Gone = slices.DeleteFunc(now.Gone, func(entry change.Entry) bool {
			return waits.Sink == "" && waits.UID == entry.UID && waits.Key == entry.Key && waits.Stream.String() == rec.Stream.String()
		})
	})
	return now, err
}

// knows says whether the state has the object, or a record of it for all sinks is in line and not saved.
func (p *past) knows(stream string, object *change.Entry) (bool, error) {
	isSaved := func() (bool, error) {
		entry, found, err := p.store.Lookup(stream, object.Key)
		return found && entry.UID == object.UID, err
	}
	if saved, err := isSaved(); saved || err != nil {
		return saved, err
	}
	of := func(rec *change.Record) bool {
		return rec.Key == object.Key && rec.UID == object.UID && rec.Sink == "" && rec.Op.OfObject()
	}
	if p.Seat.Newest(stream, of) != nil {
		return true, nil
	}
	return isSaved() // by now
}

// appendGone puts the deletes of the sink-only objects into what is to be written before the record. Where that came of
// the watch and was merged with what a reconcile had found, the reconcile is the one of the frame.
func (p *past) appendGone(batch []*change.Record, gone []change.Entry, before *change.Record, frame *change.Snapshot) []*change.Record {
	for _, entry := range gone {
		rec := &change.Record{
			Stream: before.Stream, Op: change.Deleted, Key: entry.Key, UID: entry.UID, ResourceVersion: entry.ResourceVersion,
			Received: time.Now(), FinalStateUnknown: true, Aside: true, Snapshot: cmp.Or(before.Snapshot, frame), Sink: p.Name, Epoch: before.Epoch,
		}
		p.Recovery.With(func(r *line.Recovery) {
			r.Undeleted.Told(rec)
			r.Missed.Tells(rec)
		})
		if p.shape(rec); !rec.Filtered {
			batch = append(batch, rec)
		}
	}
	return batch
}

// skipDelivered acknowledges the records that an earlier process wrote, in whatever shape, and returns the others, with
// what they prove of its sink-only objects before them.
func (p *past) skipDelivered(batch []*change.Record) ([]*change.Record, error) {
	if p.Recovery.IsOver() || len(batch) == 0 {
		return batch, nil
	}
	p.Seat.Compare(highest(batch))
	var known, fresh []*change.Record
	for _, rec := range batch {
		now, err := p.taking(rec)
		if err != nil {
			return nil, err
		}
		var found bool
		var gone []change.Entry
		p.Recovery.With(func(r *line.Recovery) { found, gone = r.Log.Take(rec, now) })
		fresh = p.appendGone(fresh, gone, rec, now.Frame)
		if found {
			known = append(known, rec)
		} else {
			fresh = append(fresh, rec)
		}
	}
	return fresh, p.Seat.Spare(known)
}

// tellMissed puts the deletes that an absent sink has missed before what takes the place of their objects: its return
// may be cut short between what announces it and the deletes, and live changes go on. What it has told so it leaves out
// when the return that follows tells it.
func (p *past) tellMissed(batch []*change.Record) ([]*change.Record, error) {
	if p.Recovery.MissesNothing() {
		return batch, nil
	}
	var known, fresh []*change.Record
	for _, rec := range batch {
		var gone []change.Entry
		told := false
		p.Recovery.With(func(r *line.Recovery) {
			r.Missed.Takes(rec)
			gone, told = r.Missed.ReplacedBy(rec), !rec.Aside && r.Missed.HasTold(rec)
		})
		if fresh = p.appendGone(fresh, gone, rec, rec.Snapshot); told {
			known = append(known, rec)
		} else {
			fresh = append(fresh, rec)
		}
	}
	return fresh, p.Seat.Spare(known)
}

// skipRetried acknowledges the records of a failed batch that the sink's log holds, and returns the others. A bucket
// and a compacted topic hold the newest of an object alone: what comes before that in the batch was written, too. A
// mark that carries ids carries those of what the failed attempt has left.
func (p *past) skipRetried(batch []*change.Record) ([]*change.Record, error) {
	if len(p.retried) == 0 {
		return batch, nil
	}
	if len(batch) > 0 {
		p.Seat.Compare(highest(batch))
	}
	type object struct {
		stream string
		key    change.Key
	}
	var known, fresh []*change.Record
	newer := map[object]bool{}
	for _, rec := range slices.Backward(batch) {
		of := object{rec.Stream.String(), rec.Key}
		if p.isRetried(rec) || newer[of] && rec.Op.OfObject() {
			known, newer[of] = append(known, rec), true
		} else {
			fresh = append(fresh, rec)
		}
	}
	slices.Reverse(known)
	slices.Reverse(fresh)
	p.wroteAll(known)
	return fresh, p.Seat.Ack(known, "")
}

// wroteAll notes that the records are in the sink's log.
func (p *past) wroteAll(records []*change.Record) {
	p.Recovery.With(func(r *line.Recovery) { r.Log.Wrote(records, p.clusterUID) })
}

// highest is the highest Seq of the batch.
func highest(batch []*change.Record) (seq uint64) {
	for _, rec := range batch {
		seq = max(seq, rec.Seq)
	}
	return seq
}

// isRetried says whether the record is one of a failed batch that the log holds.
func (p *past) isRetried(rec *change.Record) bool {
	if len(p.retried) == 0 {
		return false
	}
	id := rec.ID(p.clusterUID).String()
	_, found := p.retried[id]
	delete(p.retried, id)
	return found
}
