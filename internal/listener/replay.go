package listener

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// SupersededError says that a dead letter is history: sent now, it would tell those who keep states something false.
type SupersededError struct{ Now string } // how the object is

func (e *SupersededError) Error() string { return "superseded: " + e.Now }

// deliverReplay sends a letter again. After a failure, which opens the sink anew, the letter is gone if the sink's log
// held its event.
func (l *Listener) deliverReplay(ctx context.Context, at int, rec *change.Record) error {
	replayed, err := l.admit(rec)
	if err != nil {
		l.returned(rec, err)
		return nil
	}
	for tried := false; ; tried = true {
		found, err := l.DeadLetters.Claim(rec.Replay.Letter)
		switch {
		case err != nil:
			l.returned(rec, err)
			return nil
		case !found && !tried:
			l.returned(rec, errors.New("there is no such dead letter any more: it was sent again, or deleted"))
			return nil
		case !found: // the log has its event, or somebody deleted the letter meanwhile
			l.returned(rec, nil)
			return nil
		}
		rest, err := l.write(ctx, []due{{replayed, at}})
		if err != nil {
			rec.Replay.Done("", fmt.Errorf("not delivered yet: %w", err))
			return err
		}
		if len(rest) == 0 {
			return nil // delivered, or rejected again, and answered
		}
		replayed = rest[0].Record // a smaller one, or the same after a failure
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

// superseded says how the object of the record is, as far as the sink was told, where that is not what the record
// tells; "" where it is.
func (l *Listener) superseded(rec *change.Record) (now string, err error) {
	row, err := l.Newest(checkpoint.Object{Resource: rec.Stream.Resource.String(), Key: rec.Key})
	switch {
	case err != nil:
		return "", fmt.Errorf("find %s %s in the saved state: %w", rec.Stream, rec.Key, err)
	case rec.Op == change.Deleted && !row.Exists():
		return "", nil
	case !row.Exists():
		return "the object is gone", nil
	case row.UID != rec.UID:
		return fmt.Sprintf("the object was deleted and made again, and is at version %s", row.At.Version), nil
	case rec.Op == change.Deleted:
		return fmt.Sprintf("the object is there, at version %s", row.At.Version), nil
	case row.At.Version != rec.ResourceVersion:
		return fmt.Sprintf("the object is at version %s", row.At.Version), nil
	}
	return "", nil
}
