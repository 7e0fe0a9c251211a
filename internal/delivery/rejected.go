package delivery

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cenkalti/backoff/v4"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// tooLarge is the reason of a *sink.RejectedError that Oversize is about.
const tooLarge = "too_large"

// rejected decides what becomes of the batch's first record, which the sink will never take, and returns what is still
// to be written: a smaller one, or a note, in its place, so that the loss is on the wire where it happened (I4). The
// note goes out when the record is durable elsewhere (I1).
func (l *Listener) rejected(ctx context.Context, batch []*change.Record, rejected *sink.RejectedError) ([]*change.Record, error) {
	rec := batch[0]
	if rec.Op == change.Gap && rejected.NoPlace {
		return batch[1:], l.withoutNote(ctx, rec, rejected)
	}
	if rec.Op == change.Gap {
		if smaller := change.ShorterNote(rec); smaller != nil {
			batch[0] = smaller
			return batch, nil
		}
		return batch, &sinkError{&sink.PermanentError{Err: fmt.Errorf("even the note of a rejected record is rejected: %w", rejected)}}
	}
	if rejected.Reason == tooLarge {
		if smaller := l.smaller(ctx, rec); smaller != nil {
			batch[0] = smaller
			return batch, nil
		}
	}
	rec = l.untrimmed(rec)
	if rec.Replay != nil {
		return batch[1:], l.returned(rec, fmt.Errorf("rejected again: %w", rejected.Err))
	}
	if rejected.Reason == tooLarge && l.Oversize.Reject {
		batch[0] = rec
		return batch, &sinkError{l.refusal(rec, rejected)}
	}
	letter, err := l.keep(ctx, rec, rejected)
	if err != nil {
		return nil, err
	}
	l.observer.Rejected(l.Name, rec, rejected.Reason, rejected.Err)
	batch[0] = change.NoteOf(rec, rejected.Reason, letter)
	return batch, nil
}

// withoutNote goes on without a gap record whose own place cannot be written to, so that nobody reads there: the
// letter, the log and the metric tell of what it stands for. A gap of the stream has none yet.
func (l *Listener) withoutNote(ctx context.Context, rec *change.Record, rejected *sink.RejectedError) error {
	if rec.Marks == nil || rec.Marks.Rejected == "" {
		if _, err := l.keep(ctx, rec, rejected); err != nil {
			return err
		}
		l.observer.Rejected(l.Name, rec, rejected.Reason, rejected.Err)
	}
	return l.Seat.Ack([]*change.Record{rec}, "")
}

// replaceWithheld puts a note in the place of each record of the batch that no sink may have.
func (l *Listener) replaceWithheld(ctx context.Context, batch []*change.Record) error {
	for i, rec := range batch {
		if rec.Withheld == "" {
			continue
		}
		withheld, letter := &sink.RejectedError{Reason: rec.Withheld, Err: nothingLeft(rec.Withheld)}, ""
		if withheld.Err == nil {
			whole := *rec
			whole.Withheld, withheld.Err = "", errWithheld
			var err error
			if letter, err = l.keep(ctx, &whole, withheld); err != nil {
				return err
			}
		}
		l.observer.Rejected(l.Name, rec, withheld.Reason, withheld.Err)
		batch[i] = change.NoteOf(rec, withheld.Reason, letter)
	}
	return nil
}

// What is said of a record that was not offered to the sink.
var (
	errWithheld   = errors.New("its filter failed, and filterFailure says that it goes nowhere: correct the filter, and send it again")
	errUnreadable = errors.New("the object cannot be read as the API server sent it: look at it with kubectl, and change or delete it")
	errOtherForm  = errors.New("it lay on disk, cut and redacted by other rules than today's, and cannot be shaped again: exporter snapshot sends the object as it is now")
)

// nothingLeft is why a record is withheld of which there is nothing that a letter could keep, nil where there is
// something.
func nothingLeft(withheld string) error {
	switch withheld {
	case change.Unreadable:
		return errUnreadable
	case WithheldByForm:
		return errOtherForm
	}
	return nil
}

// keep makes a dead letter of the record, for as long as ctx lives: a full disk stops the sink, and it goes on by
// itself when there is space.
func (l *Listener) keep(ctx context.Context, rec *change.Record, rejected *sink.RejectedError) (id string, err error) {
	if l.DeadLetters == nil {
		return "", nil
	}
	attempt := func() error {
		message, err := l.messageOf(ctx, rec) // whole, whatever was cut from it
		if err == nil {
			id, err = l.DeadLetters.Keep(rec, message, rejected)
		}
		if err != nil {
			l.observer.NotKept(l.Name, err)
		}
		return err
	}
	err = backoff.Retry(attempt, backoff.WithContext(RetryForever(), ctx))
	if err == nil && id == "" {
		l.observer.Dropped(l.Name)
	}
	return id, err
}

// smaller takes the next thing away from a record that is too large. It returns nil where there is none.
func (l *Listener) smaller(ctx context.Context, rec *change.Record) *change.Record {
	if !l.isTrimmed(rec) {
		l.trimming = trimming{original: rec}
	}
	if bare := l.withoutBefore(ctx, rec); bare != nil {
		return bare
	}
	return l.trim(rec)
}

// withoutBefore takes the state before away, where the message has one beside the object. Of a delete it may be all
// that there is.
func (l *Listener) withoutBefore(ctx context.Context, rec *change.Record) *change.Record {
	if rec.Before == nil || rec.Op == change.Deleted {
		return nil
	}
	whole, err := l.messageOf(ctx, rec)
	if err != nil {
		return nil
	}
	size := whole.Size()
	bare := withMarks(rec, func(m *change.Marks) { m.BeforeOmitted = true })
	bare.Before = nil
	if message, err := l.messageOf(ctx, bare); err != nil || message.Size() >= size {
		return nil // the format has no place for it
	}
	return bare
}

// withMarks is a copy of the record with other marks.
func withMarks(rec *change.Record, set func(*change.Marks)) *change.Record {
	marked, marks := *rec, change.Marks{}
	if rec.Marks != nil {
		marks = *rec.Marks
	}
	set(&marks)
	marked.Marks = &marks
	return &marked
}

// trim makes the object smaller by the next cut that takes something away. It returns nil where there is none.
func (l *Listener) trim(rec *change.Record) *change.Record {
	for l.trimming.next < len(l.Oversize.Trims) {
		cut := l.Oversize.Trims[l.trimming.next]
		l.trimming.next++
		object, err := cut.Cut(rec.Object)
		if err != nil || len(object) >= len(rec.Object) {
			continue // nothing is there, or it is no JSON: what does not fit is kept whole
		}
		smaller := withMarks(rec, func(m *change.Marks) { m.Trimmed = strings.TrimPrefix(m.Trimmed+","+cut.Path, ",") })
		smaller.Object = object
		return smaller
	}
	return nil
}

// untrimmed is the record as it came, and forgets the cuts.
func (l *Listener) untrimmed(rec *change.Record) *change.Record {
	if l.isTrimmed(rec) {
		rec = l.trimming.original
	}
	l.trimming = trimming{}
	return rec
}

// isTrimmed says whether the cuts are of the record. Those that were spooled all have a Seq of 0.
func (l *Listener) isTrimmed(rec *change.Record) bool {
	original := l.trimming.original
	return original != nil && original.Seq == rec.Seq && original.ID(l.clusterUID) == rec.ID(l.clusterUID)
}

// refusal stops the sink. The record comes again when it is tried again.
func (l *Listener) refusal(rec *change.Record, rejected *sink.RejectedError) error {
	return &sink.PermanentError{Err: fmt.Errorf("%s %s, uid %s, resourceVersion %s, an object of %d bytes, is too large for the sink: %w, or give sink %s oversize: deadletter or oversize: trim",
		rec.Stream, rec.Key, rec.UID, rec.ResourceVersion, len(rec.Object), rejected.Err, l.Name)}
}

// marked sees to what the durable records of the batch are beside ordinary ones. It is called before their mark counts:
// so a crash before it leaves a replayed event behind the saved mark, where open finds it.
func (l *Listener) marked(batch []*change.Record) {
	for _, rec := range batch {
		if rec.Marks.LeftOut() != "" {
			l.untrimmed(rec)
			l.observer.Trimmed(l.Name, rec)
		}
		if rec.Replay == nil {
			continue
		}
		err := l.settleClaimed(rec.ID(l.clusterUID).String())
		if err != nil {
			err = fmt.Errorf("delivered, but its letter is still there: %w", err)
		}
		l.observer.Replayed(l.Name, rec, err)
		rec.Replay.Done(rec.Marks.LeftOut(), err)
	}
}

// returned ends a replay that did not come to its end: the letter stays.
func (l *Listener) returned(rec *change.Record, why error) error {
	if l.DeadLetters != nil {
		why = errors.Join(why, l.settleClaimed())
	}
	l.observer.Replayed(l.Name, rec, why)
	rec.Replay.Done("", why)
	return l.Seat.Spare([]*change.Record{rec})
}

// settleClaimed finds out what became of letters that were on their way; the sink holds the events.
func (l *Listener) settleClaimed(events ...string) error {
	held, end, err := l.DeadLetters.Settle()
	if err != nil {
		return err
	}
	for _, event := range events {
		held(event)
	}
	return end()
}
