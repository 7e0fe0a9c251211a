package delivery

import (
	"context"

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
