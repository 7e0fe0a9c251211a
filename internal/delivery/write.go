package delivery

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/line"
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
	return rest, l.mend(ctx, failure.error)
}

// sinkError is a failure of the sink's, which it could not mend by itself.
type sinkError struct{ error }

// attempt makes one attempt with the batch and returns what is still to be written.
func (l *Listener) attempt(ctx context.Context, batch []*change.Record) ([]*change.Record, error) {
	messages, err := l.encode(ctx, batch)
	encoded := batch[:len(l.ends)]
	if err != nil && len(encoded) == 0 {
		return l.unencoded(ctx, batch, err)
	}
	l.tellSaved() // what is not encoded is the next attempt's
	began := time.Now()
	mark, err := l.Target.Write(ctx, messages)
	var rejected *sink.RejectedError
	switch {
	case err == nil:
		return batch[len(encoded):], l.wrote(encoded, mark, began)
	case errors.As(err, &rejected):
		at := l.recordOf(rejected.Index)
		if at == len(encoded) {
			return batch, &sinkError{&sink.PermanentError{Err: fmt.Errorf("message %d of %d is rejected: %w", rejected.Index, len(messages), err)}}
		}
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

// encode makes the messages of the batch, up to the record whose format fails; a record may have several.
func (l *Listener) encode(ctx context.Context, batch []*change.Record) (messages []sink.Message, err error) {
	l.Encoder.Reset()
	l.messages, l.ends = l.messages[:0], l.ends[:0]
	for _, rec := range batch {
		if l.messages, err = l.Encoder.Encode(ctx, l.messages, rec); err != nil {
			break
		}
		l.ends = append(l.ends, len(l.messages))
	}
	return l.messages, err
}

// messageOf is what the sink would be given of the record. Of one that cannot be encoded it is the id alone.
func (l *Listener) messageOf(ctx context.Context, rec *change.Record) (*sink.Message, error) {
	messages, err := l.encode(ctx, []*change.Record{rec})
	var rejected *sink.RejectedError
	switch {
	case err == nil:
		return &messages[0], nil
	case errors.As(err, &rejected):
		return &sink.Message{ID: rec.ID(l.clusterUID).String()}, nil
	}
	return nil, err
}

// recordOf is the record that the message was made of, both as places in the last batch.
func (l *Listener) recordOf(message int) int {
	return sort.Search(len(l.ends), func(i int) bool { return l.ends[i] > message })
}

func (l *Listener) wrote(batch []*change.Record, mark sink.Mark, began time.Time) error {
	if len(batch) == 0 {
		return nil
	}
	l.mark = mark
	l.seldom.Reset()
	l.patience.reset()
	l.Recovery.With(func(r *line.Recovery) { r.Log.Wrote(batch, l.clusterUID) })
	l.marked(batch)
	l.observer.Written(l.Name, batch, time.Since(began))
	return l.Seat.Ack(batch, mark)
}
