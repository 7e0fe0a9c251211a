package pipeline

import (
	"fmt"
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/redo"
)

// A stream that is not configured any more may come back. Until then nobody reads it, and the marks go on. So what a
// sink's log holds of it behind the mark, and what of it is on disk, is noted as that of a sink which is absent from
// this stream alone: when the stream is back, the sink is given a gap, what it has missed of deletes, and a full
// snapshot (I4).

// unreadReading is what a log holds behind the mark, and the saved state does not know, of streams that are not
// configured.
type unreadReading struct {
	*heldReading
	present []*change.Stream
}

// newUnreadReading begins one. It is nil where the state knows no such streams.
func newUnreadReading(l *listener) (*unreadReading, error) {
	present := l.recovery.streams()
	names, err := l.store.Streams()
	if err != nil {
		return nil, err
	}
	var streams []*change.Stream
	for _, name := range names {
		if slices.ContainsFunc(present, isNamed(name)) {
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
	return &unreadReading{newHeldReading(l, streams), present}, nil
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
	if _, known := r.at[heldObject{stream.String(), id.Key, id.UID}]; known || !settled {
		r.add(&id, stream)
	}
}

// noteUnread makes the sink absent from the streams of which the log holds more than the state knows, before the mark
// moves on.
func (l *listener) noteUnread() error {
	unread := l.unread
	l.unread = nil
	if err := l.noteAbsent(unread); err != nil {
		return fmt.Errorf("note what the log of sink %s holds of streams that are not configured: %w", l.Name, err)
	}
	return nil
}

// noteAbsent makes the sink absent from the streams of what is held, unless it is so already.
func (l *listener) noteAbsent(held []checkpoint.Held) error {
	if len(held) == 0 {
		return nil
	}
	absences, err := l.store.Absences()
	if err != nil {
		return err
	}
	absent := map[checkpoint.Share]bool{}
	for _, a := range absences {
		absent[a.Share] = true
	}
	var batch checkpoint.Batch
	for _, h := range held {
		if !absent[h.Share] {
			absent[h.Share] = true
			leave(&batch, h.Share)
		}
	}
	for len(held) > 0 {
		n := min(len(held), checkpoint.MaxRecords)
		batch.Held, held = held[:n], held[n:]
		if err := l.store.Commit(batch); err != nil {
			return err
		}
		batch = checkpoint.Batch{}
	}
	return nil
}

// leaveOut notes what is left out of the records on disk, since their streams are not configured: what is not must not
// leave (I9). The sink misses it, and of a delete it is to be told when the stream is back.
func (l *listener) leaveOut(records []*change.Record) error {
	var missed []checkpoint.Held
	for _, rec := range records {
		name := rec.Stream.String()
		if l.leftOut[name] && rec.Op != change.Deleted {
			continue
		}
		h := checkpoint.Held{Share: checkpoint.Share{Sink: l.Name, Stream: name}, Exists: true}
		if rec.Op == change.Deleted {
			h.Entry = change.Entry{Key: rec.Key, UID: rec.UID, ResourceVersion: rec.ResourceVersion}
		}
		missed = append(missed, h)
		if l.leftOut == nil {
			l.leftOut = map[string]bool{}
		}
		l.leftOut[name] = true
	}
	if err := l.noteAbsent(missed); err != nil {
		return fmt.Errorf("note what is on disk for sink %s of streams that are not configured: %w", l.Name, err)
	}
	return nil
}
