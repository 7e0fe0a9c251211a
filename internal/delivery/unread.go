package delivery

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/redo"
)

// A stream that is not configured any more may come back. Until then nobody reads it, and the marks go on. So what a
// sink's log holds of it behind the mark, and what of it is on disk, is noted as that of a sink which is absent from
// this stream alone: when the stream is back, the sink is given a gap, what it has missed of deletes, and a full
// snapshot (I4). To a sink that does not take a stream any more, the stream is one that is not configured.

// unreadReading is what a log holds behind the mark, and the saved state does not know, of streams that are not
// configured.
type unreadReading struct {
	*heldReading
	present []*change.Stream
	misses  map[string]bool // the streams that the sink is absent from: what is saved is not what it was told
}

// newUnreadReading begins one. It is nil where the state knows no such streams.
func newUnreadReading(l *Listener) (*unreadReading, error) {
	present := l.Recovery.Streams()
	names, err := l.store.Streams()
	if err != nil {
		return nil, err
	}
	var streams []*change.Stream
	for _, name := range names {
		if slices.ContainsFunc(present, func(s *change.Stream) bool { return s.String() == name }) {
			continue
		}
		stream, known, err := l.store.Resource(name)
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
	// A stream of one namespace has taken that from the stream of all, of which the state still knows the rest.
	slices.SortStableFunc(streams, func(a, b *change.Stream) int { return strings.Compare(b.Namespace, a.Namespace) })
	misses, err := l.misses()
	return &unreadReading{newHeldReading(l, streams), present, misses}, err
}

// misses are the streams that the sink is absent from.
func (l *Listener) misses() (map[string]bool, error) {
	absences, err := l.store.Absences()
	streams := map[string]bool{}
	for _, a := range absences {
		if a.Sink == l.Name {
			streams[a.Stream] = true
		}
	}
	return streams, err
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
	if known || !settled || r.misses[stream.String()] {
		r.add(&id, stream)
	}
}

// noteUnread makes the sink absent from the streams of which the log holds more than the state knows, before the mark
// moves on.
func (l *Listener) noteUnread() error {
	unread := l.unread
	if l.unread = nil; len(unread) == 0 {
		return nil
	}
	if err := l.noteAbsent(unread, &checkpoint.Batch{}); err != nil {
		return fmt.Errorf("note what the log of sink %s holds of streams that are not configured: %w", l.Name, err)
	}
	return nil
}

// noteAbsent makes the sink absent from the streams of what is held, unless it is so already.
func (l *Listener) noteAbsent(held []checkpoint.Held, batch *checkpoint.Batch) error {
	absences, err := l.store.Absences()
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
		if err := l.store.Commit(*batch); err != nil {
			return err
		}
		*batch = checkpoint.Batch{}
	}
	return nil
}

// leaveOut notes what is left out of the records on disk, since their streams are not configured: what is not must not
// leave (I9). The sink lacks it from the first of them on, and of a delete it is to be told when the stream is back.
func (l *Listener) leaveOut(records []*change.Record) error {
	var missed []checkpoint.Held
	var batch checkpoint.Batch
	for _, rec := range records {
		subscription := checkpoint.Subscription{Sink: l.Name, Stream: rec.Stream.String()}
		if !l.leftOut[subscription.Stream] {
			l.lacks(&batch, subscription, rec)
		}
		if rec.Op == change.Deleted {
			missed = append(missed, checkpoint.Held{Subscription: subscription, Entry: entryBefore(rec), Exists: true})
		}
	}
	if len(missed) == 0 && len(batch.Absent) == 0 {
		return nil
	}
	if err := l.noteAbsent(missed, &batch); err != nil {
		return fmt.Errorf("note what is on disk for sink %s of streams that are not configured: %w", l.Name, err)
	}
	return nil
}

// lacks makes the sink absent from the record's stream, from before the record on.
func (l *Listener) lacks(batch *checkpoint.Batch, subscription checkpoint.Subscription, rec *change.Record) {
	MakeAbsent(batch, subscription)
	from := change.VersionBelow(rec.ResourceVersion)
	if rec.Snapshot != nil {
		from = rec.Snapshot.From
	}
	batch.Absent[len(batch.Absent)-1].From = change.Position{ResourceVersion: from, Selector: change.Interrupted}
	if l.leftOut == nil {
		l.leftOut = map[string]bool{}
	}
	l.leftOut[subscription.Stream] = true
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
