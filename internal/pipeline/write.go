package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// write makes one attempt with the batch and returns what is still to be written. Where the sink failed it is open
// again.
func (l *listener) write(ctx context.Context, batch []*change.Record) ([]*change.Record, error) {
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
func (l *listener) attempt(ctx context.Context, batch []*change.Record) ([]*change.Record, error) {
	messages := l.encode(batch)
	l.tellSaved()
	began := time.Now()
	mark, err := l.Target.Write(ctx, messages)
	var rejected *sink.RejectedError
	switch {
	case err == nil:
		return nil, l.wrote(batch, mark, began)
	case errors.As(err, &rejected):
		at := l.recordOf(rejected.Index)
		if at == len(batch) {
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

// tellSaved tells the sink of the saved mark, where it wants to know.
func (l *listener) tellSaved() {
	saved := l.kept.Swap(nil)
	if keeper, ok := l.Target.(sink.Keeper); ok && saved != nil {
		keeper.Keep(*saved)
	}
}

// encode makes the messages of the batch; a record may have several.
func (l *listener) encode(batch []*change.Record) []sink.Message {
	l.Encoder.Reset()
	l.messages, l.ends = l.messages[:0], l.ends[:0]
	for _, rec := range batch {
		l.messages = l.Encoder.Encode(l.messages, rec)
		l.ends = append(l.ends, len(l.messages))
	}
	return l.messages
}

// recordOf is the record that the message was made of, both as places in the last batch.
func (l *listener) recordOf(message int) int {
	return sort.Search(len(l.ends), func(i int) bool { return l.ends[i] > message })
}

func (l *listener) wrote(batch []*change.Record, mark sink.Mark, began time.Time) error {
	if len(batch) == 0 {
		return nil
	}
	l.mark = mark
	l.seldom.Reset()
	l.patience.reset()
	l.delivered.wrote(batch, l.clusterUID)
	l.marked(batch)
	l.observer.Written(l.Name, batch, time.Since(began))
	return l.acknowledged(batch, mark)
}
