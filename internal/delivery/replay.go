package delivery

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/change"
)

// SupersededError says that a dead letter is history: sent now, it would tell those who keep states something false.
type SupersededError struct{ Now string } // how the object is

func (e *SupersededError) Error() string { return "superseded: " + e.Now }

// giveBack is the answer to a replay for a sink whose queue goes to disk: the letter is where it was, and the
// position moves on. One that is being written to the sink keeps its turn; a crash finds the letter, too.
func (l *Listener) giveBack(rec *change.Record) {
	behind := errors.New("the sink does not keep up, and what is for it goes to disk: try again when kubecdc_spool_bytes is 0")
	l.observer.Replayed(l.Name, rec, behind)
	rec.Replay.Done("", behind)
}

// deliverReplay sends a letter again. After a failure, which opens the sink anew, the letter is gone if the sink's log
// held its event.
func (l *Listener) deliverReplay(ctx context.Context, rec *change.Record) error {
	replayed, err := l.admit(rec)
	if err != nil {
		return l.returned(rec, err)
	}
	for tried := false; ; tried = true {
		found, err := l.DeadLetters.Claim(rec.Replay.Letter)
		switch {
		case err != nil:
			return l.returned(rec, err)
		case !found && !tried:
			return l.returned(rec, errors.New("there is no such dead letter any more: it was sent again, or deleted"))
		case !found:
			if l.isRetried(replayed) { // else somebody deleted the letter meanwhile
				l.wroteAll([]*change.Record{replayed})
			}
			return l.returned(rec, nil)
		}
		rest, err := l.write(ctx, []*change.Record{replayed})
		if err != nil {
			rec.Replay.Done("", fmt.Errorf("not delivered yet: %w", err))
			return err
		}
		if len(rest) == 0 {
			return nil // delivered, or rejected again, and answered
		}
		replayed = rest[0] // a smaller one, or the same after a failure
	}
}

// admit returns the record with the mark of what it is worth now. Something newer than the letter that waits after it
// counts, too.
func (l *Listener) admit(rec *change.Record) (*change.Record, error) {
	now, err := l.superseded(rec)
	if err != nil {
		return nil, err
	}
	worth := change.Current
	if now != "" {
		if worth = change.History; !rec.Replay.Force {
			return nil, &SupersededError{now}
		}
	}
	marked := *rec
	marked.Remarks = &change.Remarks{Replayed: worth}
	return &marked, nil
}

// superseded says how the object of the record is, as far as was read, where that is not what the record tells; ""
// where it is. What is for one sink alone tells nothing new.
func (l *Listener) superseded(rec *change.Record) (now string, err error) {
	stream := rec.Stream.String()
	of := func(other *change.Record) bool {
		return other.Key == rec.Key && other.Sink == "" && other.Op.OfObject()
	}
	var entry change.Entry
	exists := false
	if newest := l.Seat.Newest(stream, of); newest != nil {
		entry = change.Entry{Key: newest.Key, UID: newest.UID, ResourceVersion: newest.ResourceVersion}
		exists = newest.Op != change.Deleted
	} else if entry, exists, err = l.reader.State.Lookup(stream, rec.Key); err != nil {
		return "", fmt.Errorf("find %s %s in the saved state: %w", stream, rec.Key, err)
	}
	switch {
	case rec.Op == change.Deleted && !exists:
		return "", nil
	case !exists:
		return "the object is gone", nil
	case entry.UID != rec.UID:
		return fmt.Sprintf("the object was deleted and made again, and is at version %s", entry.ResourceVersion), nil
	case rec.Op == change.Deleted:
		return fmt.Sprintf("the object is there, at version %s", entry.ResourceVersion), nil
	case entry.ResourceVersion != rec.ResourceVersion:
		return fmt.Sprintf("the object is at version %s", entry.ResourceVersion), nil
	}
	return "", nil
}
