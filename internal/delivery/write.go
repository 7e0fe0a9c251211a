package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// write makes one attempt with the batch and returns what is still to be written. Where the sink failed it is open
// again.
func (l *Listener) write(ctx context.Context, batch []*change.Record) ([]*change.Record, error) {
	rest, err := l.attempt(ctx, batch)
	var failure *sinkError
	if !errors.As(err, &failure) {
		return rest, err
	}
	l.rest = rest
	l.out.doubted()
	return rest, l.mend(ctx, failure.error)
}

// attempt makes one attempt with the batch and returns what is still to be written.
func (l *Listener) attempt(ctx context.Context, batch []*change.Record) ([]*change.Record, error) {
	messages, err := l.out.encode(ctx, batch)
	encoded := batch[:l.out.encoded()]
	if err != nil && len(encoded) == 0 {
		return l.unencoded(ctx, batch, err)
	}
	l.tellSaved() // what is not encoded is the next attempt's
	began := time.Now()
	mark, err := l.Target.Write(ctx, messages)
	var rejected *sink.RejectedError
	switch {
	case err == nil:
		l.out.written(len(encoded))
		return batch[len(encoded):], l.wrote(encoded, mark, began)
	case errors.As(err, &rejected):
		at := l.out.recordOf(rejected.Index)
		if at == len(encoded) {
			return batch, &sinkError{&sink.PermanentError{Err: fmt.Errorf("message %d of %d is rejected: %w", rejected.Index, len(messages), err)}}
		}
		l.out.written(at)
		if err := l.wrote(batch[:at], mark, began); err != nil {
			return nil, err
		}
		return l.rejected(ctx, batch[at:], rejected)
	case ctx.Err() != nil:
		return nil, err
	}
	return batch, &sinkError{err}
}

// unencoded treats the error of the first record's format as one of the sink.
func (l *Listener) unencoded(ctx context.Context, batch []*change.Record, err error) ([]*change.Record, error) {
	var rejected *sink.RejectedError
	switch {
	case errors.As(err, &rejected):
		return l.rejected(ctx, batch, rejected)
	case ctx.Err() != nil:
		return nil, err
	case l.Gate != nil && !l.Gate.Admits(batch[0].Stream): // it was on disk, or what admitted it does not count any more
		return batch, l.awaitGate(ctx, batch[0].Stream)
	}
	return batch, &sinkError{err}
}

// tellSaved tells the sink of the saved mark, where it wants to know.
func (l *Listener) tellSaved() {
	saved := l.saved.Load()
	if keeper, ok := l.Target.(sink.Keeper); ok && saved != l.known {
		keeper.Keep(*saved)
	}
	l.known = saved
}

func (l *Listener) wrote(batch []*change.Record, mark sink.Mark, began time.Time) error {
	if len(batch) == 0 {
		return nil
	}
	l.mark = mark
	l.seldom.Reset()
	l.patience.reset()
	l.wroteAll(batch)
	l.marked(batch)
	l.observer.Written(l.Name, batch, time.Since(began))
	return l.Seat.Ack(batch, mark)
}
