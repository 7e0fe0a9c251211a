package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	if smaller := l.lighter(ctx, rec, rejected); smaller != nil {
		batch[0] = smaller
		return batch, nil
	}
	if rec.Op == change.Gap {
		return batch, &sinkError{&sink.PermanentError{Err: fmt.Errorf("even the note of a rejected record is rejected: %w", rejected)}}
	}
	rec = l.trimming.whole(rec)
	if rec.Replay != nil {
		return batch[1:], l.returned(rec, fmt.Errorf("rejected again: %w", rejected.Err))
	}
	if rejected.Reason == tooLarge && l.Oversize.Reject {
		batch[0] = rec
		return batch, &sinkError{refusal(l.Name, rec, rejected)}
	}
	letter, err := l.deadLetters.keep(ctx, rec, rejected)
	if err != nil {
		return nil, err
	}
	l.observer.Rejected(l.Name, rec, rejected.Reason, rejected.Err)
	batch[0] = noteOf(rec, rejected.Reason, letter)
	return batch, nil
}

// lighter is the record with less of what the sink may have refused, nil where there is nothing less of it.
func (l *Listener) lighter(ctx context.Context, rec *change.Record, rejected *sink.RejectedError) *change.Record {
	switch now := time.Now(); {
	case rec.Op == change.Gap && now.Sub(rec.Received) > noteAge: // the sink may have been stopped since
		return dated(rec, now)
	case rec.Op == change.Gap:
		return change.ShorterNote(rec)
	case rejected.Reason == tooLarge:
		return l.trimming.smaller(ctx, rec)
	case rejected.NoPlace:
		return nil
	}
	return l.trimming.withoutState(rec)
}

// noteAge is how old a note becomes at most, so that no sink refuses it for its time: that of the record may be why
// that was refused.
const noteAge = time.Minute

// noteOf is the note of the record as of now.
func noteOf(rec *change.Record, reason, letter string) *change.Record {
	return dated(change.NoteOf(rec, reason, letter), time.Now())
}

func dated(rec *change.Record, at time.Time) *change.Record {
	now := *rec
	now.Received = at
	return &now
}

// withoutNote goes on without a gap record whose own place cannot be written to, so that nobody reads there: the
// letter, the log and the metric tell of what it stands for. A gap of the stream has none yet.
func (l *Listener) withoutNote(ctx context.Context, rec *change.Record, rejected *sink.RejectedError) error {
	if rec.Remarks == nil || rec.Remarks.Rejected == "" {
		if _, err := l.deadLetters.keep(ctx, rec, rejected); err != nil {
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
			if letter, err = l.deadLetters.keep(ctx, &whole, withheld); err != nil {
				return err
			}
		}
		l.observer.Rejected(l.Name, rec, withheld.Reason, withheld.Err)
		batch[i] = noteOf(rec, withheld.Reason, letter)
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

// refusal stops the sink. The record comes again when it is tried again.
func refusal(sinkName string, rec *change.Record, rejected *sink.RejectedError) error {
	return &sink.PermanentError{Err: fmt.Errorf("%s %s, uid %s, resourceVersion %s, an object of %d bytes, is too large for the sink: %w, or give sink %s oversize: deadletter or oversize: trim",
		rec.Stream, rec.Key, rec.UID, rec.ResourceVersion, len(rec.Object), rejected.Err, sinkName)}
}

// marked sees to what the durable records of the batch are beside ordinary ones. It is called before their mark counts:
// so a crash before it leaves a replayed event after the saved mark, where open finds it.
func (l *Listener) marked(batch []*change.Record) {
	l.deadLetters.delivered(batch)
	for _, rec := range batch {
		if rec.Remarks.LeftOut() != "" {
			l.trimming.whole(rec)
			l.observer.Trimmed(l.Name, rec)
		}
		if rec.Replay == nil {
			continue
		}
		err := l.deadLetters.settle(rec.ID(l.clusterUID).String())
		if err != nil {
			err = fmt.Errorf("delivered, but its letter is still there: %w", err)
		}
		l.observer.Replayed(l.Name, rec, err)
		rec.Replay.Done(rec.Remarks.LeftOut(), err)
	}
}

// returned ends a replay that did not come to its end: the letter stays.
func (l *Listener) returned(rec *change.Record, why error) error {
	why = errors.Join(why, l.deadLetters.settle())
	l.observer.Replayed(l.Name, rec, why)
	rec.Replay.Done("", why)
	return l.Seat.Spare([]*change.Record{rec})
}
