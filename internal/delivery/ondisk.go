package delivery

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/line"
	"github.com/kubecdc/kubecdc/internal/redo"
)

// onDisk is what waits for a sink on disk, and what becomes of it when the configuration has changed since it was put
// there.
type onDisk struct {
	intake
	clusterUID string
	store      *checkpoint.Store
	reshape    func(*change.Record) error // nil leaves what comes from disk as it is
	Recovery   line.Recovery
	leftOut    map[string]bool // streams that are not configured, and of which something was left out
}

// takeSpooled takes the oldest records from disk, those that the sink still takes.
func (d *onDisk) takeSpooled() ([]*change.Record, error) {
	before := query(&d.intake, (*fifo.Backlog).Extent)
	after := before
	records, others, err := d.readSpool(&after)
	if err == nil {
		err = d.leaveOut(others)
	}
	if err != nil {
		return nil, err
	}
	d.use(func(b *fifo.Backlog) { b.TakeRead(&before, &after, records) })
	if len(records) == 0 {
		err = d.Seat.Ack(nil, "")
	}
	return records, err
}

// readSpool reads a batch from the front of the extent. Records of streams that the sink does not take any more are
// left out: what is not configured must not leave (I9).
func (d *onDisk) readSpool(extent *fifo.Spool) (taken, left []*change.Record, err error) {
	most := line.BatchLimit()
	records, err := d.store.ReadSpool(d.Name, extent, most.Bytes, most.Records)
	if err != nil {
		return nil, nil, err
	}
	return d.stillTaken(records)
}

// stillTaken are the records of streams that the sink takes; left are those of streams that are not configured.
func (d *onDisk) stillTaken(records []*change.Record) (taken, left []*change.Record, err error) {
	taken = records[:0]
	same, present := map[*change.Stream]*change.Stream{}, d.Recovery.Streams() // most records share their streams
	known := sync.OnceValues(d.knownStreams)
	for _, rec := range records {
		if rec.Op == change.Actor { // of no stream that is configured
			if d.Actors {
				taken = append(taken, rec)
			}
			continue
		}
		if same[rec.Stream] == nil {
			same[rec.Stream] = redo.StreamNamed(present, rec.Stream.String())
		}
		now, asked, err := same[rec.Stream], same[rec.Stream], error(nil)
		if now == nil {
			now, asked, err = d.streamOnDisk(rec, present, known)
		}
		switch {
		case err != nil:
			return nil, nil, err
		case now == nil:
			left = append(left, rec)
		case d.Takes(asked):
			moveTo(now, rec)
			d.shapeAgain(rec)
			taken = append(taken, rec)
		}
	}
	return taken, left, nil
}

// moveTo makes the record one of the stream. The position of one namespace tells nothing of the others: it must not
// pass what the log holds of those.
func moveTo(now *change.Stream, rec *change.Record) {
	if now.Namespace == "" && rec.Stream.Namespace != "" {
		rec.Position = change.Position{}
	}
	rec.Stream = now
}

// shapeAgain brings what lay on disk into today's form: the rules may be stricter than when it was put there. What
// cannot be is withheld; of a delete, its last state alone (I9).
func (d *onDisk) shapeAgain(rec *change.Record) {
	if d.reshape == nil || !rec.Op.OfObject() || rec.Object == nil && rec.Before == nil || d.reshape(rec) == nil {
		return
	}
	rec.Object, rec.Before, rec.Involved = nil, nil, nil
	if rec.Op != change.Deleted {
		rec.Withheld = WithheldByForm
	}
}

// WithheldByForm is why a record is withheld that was cut and redacted by other rules than today's.
const WithheldByForm = "redaction"

// streamOnDisk is the stream that a record on disk is of now, since its own is not configured any more, nil where
// nobody reads it: the one that has inherited its object. What speaks of the stream keeps that, and its id (I8), if
// another one has inherited a part of it. A stream that is over has left its resource: the sink is still to be told how
// it ended. Where the heir is not configured any more either, the record is the heir's: it is that which the sink lacks
// the record of.
func (d *onDisk) streamOnDisk(rec *change.Record, present []*change.Stream, known streamsOnce) (now, asked *change.Stream, err error) {
	id := rec.ID(d.clusterUID)
	switch heir := heirOf(rec, id, present); {
	case heir != nil && rec.Key.Name != "":
		return heir, heir, nil
	case heir != nil:
		return rec.Stream, heir, nil
	}
	all, err := known()
	if err != nil {
		return nil, nil, err
	}
	name := rec.Stream.String()
	positioned := redo.StreamNamed(all, name) != nil
	if heir := heirOf(rec, id, all); heir != nil && (!positioned || rec.Key.Name != "") {
		rec.Stream = heir
	}
	if positioned || rec.Stream.String() != name {
		return nil, nil, nil
	}
	stream, found, err := d.store.Resource(name)
	if err != nil || !found {
		return nil, nil, err
	}
	return &stream, &stream, nil
}

// streamsOnce reads streams once.
type streamsOnce func() ([]*change.Stream, error)

// knownStreams are those that the state has a position of, configured or not. One of a namespace has taken that from
// the stream of all, of which the state still knows the rest: it comes first.
func (d *onDisk) knownStreams() (all []*change.Stream, err error) {
	positions, err := d.store.Positions()
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(positions)) {
		stream, found, err := d.store.Resource(name)
		if err != nil {
			return nil, err
		}
		if found {
			all = append(all, &stream)
		}
	}
	mostNarrowFirst(all)
	return all, nil
}

// heirOf is which of the streams has inherited what the record tells of, nil where none has.
func heirOf(rec *change.Record, id change.ID, all []*change.Stream) *change.Stream {
	if rec.Key.Name != "" {
		return redo.StreamOf(all, id)
	}
	if at := slices.IndexFunc(all, func(s *change.Stream) bool { return inherits(s, rec.Stream) }); at >= 0 {
		return all[at]
	}
	return nil
}

// inherits says whether the heir has a part of the stream.
func inherits(heir, stream *change.Stream) bool {
	return heir.Resource.String() == stream.Resource.String() && (heir.Namespace == "" || stream.Namespace == "")
}

// eachSpooled gives each the records on disk that are not delivered.
func (d *onDisk) eachSpooled(each func(rec *change.Record)) error {
	spool, err := d.store.Spool(d.Name)
	if err != nil {
		return err
	}
	d.use(func(b *fifo.Backlog) { spool = b.Undelivered(spool) }) // what is before was delivered, and lost
	most, present := line.BatchLimit(), d.Recovery.Streams()
	for !spool.Empty() {
		records, err := d.store.ReadSpool(d.Name, &spool, most.Bytes, most.Records)
		if err != nil {
			return err
		}
		for _, rec := range records {
			if heir := redo.StreamOf(present, rec.ID(d.clusterUID)); heir != nil && rec.Key.Name != "" {
				rec.Stream = heir
			}
			each(rec)
		}
	}
	return nil
}

// noteAbsent makes the sink absent from the streams of what is held, unless it is so already.
func (d *onDisk) noteAbsent(held []checkpoint.Held, batch *checkpoint.Batch) error {
	absences, err := d.store.Absences()
	if err != nil {
		return err
	}
	absent := map[checkpoint.Subscription]bool{}
	for _, a := range slices.Concat(absences, batch.Absent) {
		absent[a.Subscription] = true
	}
	for _, h := range held {
		if !absent[h.Subscription] {
			absent[h.Subscription] = true
			MakeAbsent(batch, h.Subscription)
		}
	}
	for first := true; first || len(held) > 0; first = false {
		n := min(len(held), checkpoint.MaxRecords)
		batch.Held, held = held[:n], held[n:]
		if err := d.store.Commit(*batch); err != nil {
			return err
		}
		*batch = checkpoint.Batch{}
	}
	return nil
}

// leaveOut notes what is left out of the records on disk, since their streams are not configured: what is not must not
// leave (I9). The sink lacks it from the first of them on, and of a delete it is to be told when the stream is back.
func (d *onDisk) leaveOut(records []*change.Record) error {
	var missed []checkpoint.Held
	var batch checkpoint.Batch
	for _, rec := range records {
		streams, err := d.lackedBy(rec)
		if err != nil {
			return err
		}
		for _, name := range streams {
			if !d.leftOut[name] {
				d.lacks(&batch, checkpoint.Subscription{Sink: d.Name, Stream: name}, rec)
			}
		}
		if rec.Op == change.Deleted {
			subscription := checkpoint.Subscription{Sink: d.Name, Stream: rec.Stream.String()}
			missed = append(missed, checkpoint.Held{Subscription: subscription, Entry: entryBefore(rec), Exists: true})
		}
	}
	if len(missed) == 0 && len(batch.Absent) == 0 {
		return nil
	}
	if err := d.noteAbsent(missed, &batch); err != nil {
		return fmt.Errorf("note what is on disk for sink %s of streams that are not configured: %w", d.Name, err)
	}
	return nil
}

// lackedBy are the streams of which the sink lacks the record: a gap is also in those that have inherited a part. Those
// that are configured have none of it, or the sink would be given the gap: it may be that of one namespace, which the
// stream of all has inherited.
func (d *onDisk) lackedBy(rec *change.Record) ([]string, error) {
	names := []string{rec.Stream.String()}
	if rec.Op != change.Gap {
		return names, nil
	}
	all, err := d.knownStreams()
	present := d.Recovery.Streams()
	for _, s := range all {
		if s.String() != names[0] && inherits(s, rec.Stream) && redo.StreamNamed(present, s.String()) == nil {
			names = append(names, s.String())
		}
	}
	return names, err
}

// lacks makes the sink absent from the stream, from before the record on.
func (d *onDisk) lacks(batch *checkpoint.Batch, subscription checkpoint.Subscription, rec *change.Record) {
	MakeAbsent(batch, subscription)
	from := change.VersionBelow(rec.ResourceVersion)
	if rec.Snapshot != nil {
		from = rec.Snapshot.From
	}
	batch.Absent[len(batch.Absent)-1].From = change.Position{ResourceVersion: from, Selector: change.Interrupted}
	if d.leftOut == nil {
		d.leftOut = map[string]bool{}
	}
	d.leftOut[subscription.Stream] = true
}

// entryBefore is the object before its delete. The delete that the sink is told of later is not the watch's, and must
// not have its id, since that has the object with it (I8).
func entryBefore(deleted *change.Record) change.Entry {
	version := deleted.ResourceVersion
	if !deleted.FinalStateUnknown {
		version = change.VersionBelow(version)
	}
	return change.Entry{Key: deleted.Key, UID: deleted.UID, ResourceVersion: version}
}

// absences are the streams that the sink is absent from.
func (d *onDisk) absences() (map[string]bool, error) {
	absences, err := d.store.Absences()
	streams := map[string]bool{}
	for _, a := range absences {
		if a.Sink == d.Name {
			streams[a.Stream] = true
		}
	}
	return streams, err
}

// mostNarrowFirst puts streams of one namespace before those of all, from which they have taken it.
func mostNarrowFirst(streams []*change.Stream) {
	slices.SortStableFunc(streams, func(a, b *change.Stream) int { return strings.Compare(b.Namespace, a.Namespace) })
}
