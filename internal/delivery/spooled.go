package delivery

import (
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/line"
	"github.com/kubecdc/kubecdc/internal/redo"
)

// takeSpooled takes the oldest records from disk, those that the sink still takes.
func (l *Listener) takeSpooled() ([]*change.Record, error) {
	before := query(l, (*fifo.Backlog).Extent)
	after := before
	records, others, err := l.readSpool(&after)
	if err == nil {
		err = l.leaveOut(others)
	}
	if err != nil {
		return nil, err
	}
	l.use(func(b *fifo.Backlog) { b.TakeRead(&before, &after, records) })
	if len(records) == 0 {
		err = l.Seat.Ack(nil, "")
	}
	return records, err
}

// readSpool reads a batch from the front of the extent. Records of streams that the sink does not take any more are
// left out: what is not configured must not leave (I9).
func (l *Listener) readSpool(extent *fifo.Spool) (taken, left []*change.Record, err error) {
	most := line.BatchLimit()
	records, err := l.store.ReadSpool(l.Name, extent, most.Bytes, most.Records)
	if err != nil {
		return nil, nil, err
	}
	return l.stillTaken(records)
}

// stillTaken are the records of streams that the sink takes; left are those of streams that are not configured.
func (l *Listener) stillTaken(records []*change.Record) (taken, left []*change.Record, err error) {
	taken = records[:0]
	same, present := map[*change.Stream]*change.Stream{}, l.Recovery.Streams() // most records share their streams
	for _, rec := range records {
		if same[rec.Stream] == nil {
			same[rec.Stream] = redo.StreamNamed(present, rec.Stream.String())
		}
		now, asked, err := same[rec.Stream], same[rec.Stream], error(nil)
		if now == nil {
			now, asked, err = l.streamOnDisk(rec, present)
		}
		switch {
		case err != nil:
			return nil, nil, err
		case now == nil:
			left = append(left, rec)
		case l.Takes(asked):
			rec.Stream = now
			l.shapeAgain(rec)
			taken = append(taken, rec)
		}
	}
	return taken, left, nil
}

// shapeAgain brings what lay on disk into today's form: the rules may be stricter than when it was put there. What
// cannot be is withheld; of a delete, its last state alone (I9).
func (l *Listener) shapeAgain(rec *change.Record) {
	if l.reshape == nil || !rec.Op.OfObject() || rec.Object == nil && rec.Before == nil || l.reshape(rec) == nil {
		return
	}
	rec.Object, rec.Before = nil, nil
	if rec.Op != change.Deleted {
		rec.Withheld = WithheldByForm
	}
}

// WithheldByForm is why a record is withheld that was cut and redacted by other rules than today's.
const WithheldByForm = "redaction"

// streamOnDisk is the stream that a record on disk is of now, since its own is not configured any more, nil where
// nobody reads it: the one that has inherited its object. What speaks of the stream keeps that, and its id (I8), if
// another one has inherited a part of it. A stream that is over has left its resource: the sink is still to be told how
// it ended.
func (l *Listener) streamOnDisk(rec *change.Record, present []*change.Stream) (now, asked *change.Stream, err error) {
	id := rec.ID(l.clusterUID)
	if rec.Key.Name != "" {
		if heir := redo.StreamOf(present, id); heir != nil {
			return heir, heir, nil
		}
	} else if at := slices.IndexFunc(present, func(s *change.Stream) bool { return inherits(s, rec.Stream) }); at >= 0 {
		return rec.Stream, present[at], nil
	}
	name := rec.Stream.String()
	_, positioned, err := l.store.Position(name)
	if err != nil || positioned {
		return nil, nil, err
	}
	stream, found, err := l.store.Resource(name)
	if err != nil || !found {
		return nil, nil, err
	}
	return &stream, &stream, nil
}

// inherits says whether the heir has a part of the stream.
func inherits(heir, stream *change.Stream) bool {
	return heir.Resource.String() == stream.Resource.String() && (heir.Namespace == "" || stream.Namespace == "")
}

// LoadSpool takes up what an earlier process has left, before the sink is opened.
func (l *Listener) LoadSpool() error {
	saved, err := l.store.Spool(l.Name)
	if err == nil {
		err = l.firstSpooled(saved)
	}
	if err != nil {
		return err
	}
	var oldest time.Time
	if len(l.spooledFirst) > 0 {
		oldest = l.spooledFirst[0].Received
	}
	l.use(func(b *fifo.Backlog) { b.Resume(saved, oldest) })
	return nil
}

// firstSpooled reads the first batch on disk that is not delivered: a process may have written it without noting that.
func (l *Listener) firstSpooled(extent fifo.Spool) (err error) {
	l.use(func(b *fifo.Backlog) { extent = b.Undelivered(extent) })
	l.spooledFirst, _, err = l.readSpool(&extent)
	return err
}
