package listener

import (
	"context"
	"fmt"

	"github.com/cenkalti/backoff/v4"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// deadLetters are those of one sink, as its listener keeps them and gives them up. One goroutine uses them.
type deadLetters struct {
	sink     string
	to       DeadLetters // nil keeps none
	out      *outgoing
	observer Observer
}

// keep makes a dead letter of the record, for as long as ctx lives: a full disk stops the sink, and it goes on by
// itself when there is space.
func (d *deadLetters) keep(ctx context.Context, rec *change.Record, rejected *sink.RejectedError) (id string, err error) {
	if d.to == nil {
		return "", nil
	}
	attempt := func() error {
		message, err := d.out.messageOf(ctx, rec) // whole, whatever was cut from it
		if err == nil {
			id, err = d.to.Keep(rec, message, rejected)
		}
		if err != nil {
			d.observer.NotKept(d.sink, err)
		}
		return err
	}
	err = backoff.Retry(attempt, backoff.WithContext(RetryForever(), ctx))
	if err == nil && id == "" {
		d.observer.Dropped(d.sink)
	}
	return id, err
}

// settle finds out what became of letters that were on their way; the sink holds the events.
func (d *deadLetters) settle(events ...string) error {
	if d.to == nil {
		return nil
	}
	held, end, err := d.to.Settle()
	if err != nil {
		return err
	}
	for _, event := range events {
		held(event)
	}
	return end()
}

// delivered gives up the letters of states that the sink has got whole.
func (d *deadLetters) delivered(batch []*change.Record) {
	letters, gives := d.to.(Obsolete)
	if !gives {
		return
	}
	for _, rec := range batch {
		if !rec.Op.OfObject() || rec.Replay != nil || rec.Remarks.LeftOut() != "" {
			continue
		}
		id, err := letters.Delivered(rec)
		if err != nil {
			err = fmt.Errorf("delivered, but its letter is still there: %w", err)
		}
		if id != "" || err != nil {
			replayed := *rec
			replayed.Replay = &change.Replay{Letter: id}
			d.observer.Replayed(d.sink, &replayed, err)
		}
	}
}
