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
func (k *deadLetters) keep(ctx context.Context, rec *change.Record, rejected *sink.RejectedError) (id string, err error) {
	if k.to == nil {
		return "", nil
	}
	attempt := func() error {
		message, err := k.out.messageOf(ctx, rec) // whole, whatever was cut from it
		if err == nil {
			id, err = k.to.Keep(rec, message, rejected)
		}
		if err != nil {
			k.observer.NotKept(k.sink, err)
		}
		return err
	}
	err = backoff.Retry(attempt, backoff.WithContext(RetryForever(), ctx))
	if err == nil && id == "" {
		k.observer.Dropped(k.sink)
	}
	return id, err
}

// settle finds out what became of letters that were on their way; the sink holds the events.
func (k *deadLetters) settle(events ...string) error {
	if k.to == nil {
		return nil
	}
	held, end, err := k.to.Settle()
	if err != nil {
		return err
	}
	for _, event := range events {
		held(event)
	}
	return end()
}
