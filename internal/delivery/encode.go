package delivery

import (
	"context"
	"errors"
	"sort"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// sinkError is a failure of the sink's, which it could not mend by itself.
type sinkError struct{ error }

// encode makes the messages of the batch, up to the record whose format fails; a record may have several. The chain
// says which of them are patches.
func (l *Listener) encode(ctx context.Context, batch []*change.Record) (messages []sink.Message, err error) {
	if l.chain == nil {
		return l.encodeAs(ctx, batch, asItIs)
	}
	l.chain.Begin()
	return l.encodeAs(ctx, batch, l.chain.Next)
}

func asItIs(rec *change.Record) *change.Record { return rec }

func (l *Listener) encodeAs(ctx context.Context, batch []*change.Record, form func(*change.Record) *change.Record) (messages []sink.Message, err error) {
	l.Encoder.Reset()
	l.messages, l.ends = l.messages[:0], l.ends[:0]
	for _, rec := range batch {
		if l.messages, err = l.Encoder.Encode(ctx, l.messages, form(rec)); err != nil {
			break
		}
		l.ends = append(l.ends, len(l.messages))
	}
	return l.messages, err
}

// messageOf is what the sink would be given of the record, never as a patch. Of one that cannot be encoded it is the id
// alone.
func (l *Listener) messageOf(ctx context.Context, rec *change.Record) (*sink.Message, error) {
	messages, err := l.encodeAs(ctx, []*change.Record{rec}, asItIs)
	var rejected *sink.RejectedError
	switch {
	case err == nil:
		return &messages[0], nil
	case errors.As(err, &rejected):
		return &sink.Message{ID: rec.ID(l.clusterUID).String()}, nil
	}
	return nil, err
}

// written tells the chain that the first n records of the batch are in the log, and no other.
func (l *Listener) written(n int) {
	if l.chain != nil {
		l.chain.Wrote(n)
	}
}

// doubted tells the chain that nobody knows what is in the log.
func (l *Listener) doubted() {
	if l.chain != nil {
		l.chain.Break()
	}
}

// recordOf is the record that the message was made of, both as places in the last batch.
func (l *Listener) recordOf(message int) int {
	return sort.Search(len(l.ends), func(i int) bool { return l.ends[i] > message })
}
