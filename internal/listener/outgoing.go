package listener

import (
	"context"
	"errors"
	"sort"

	"github.com/kubecdc/kubecdc/internal/chain"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// due is a record on its way into the sink, in the form that this sink is given, and its place in the batch.
type due struct {
	*change.Record
	at int
}

// outgoing is a batch as it goes to the sink: its messages, which record each of them is of, and which are patches. One
// goroutine uses it.
type outgoing struct {
	clusterUID string
	encoder    Encoder
	chain      *chain.Chain // nil where updates are whole objects
	messages   []sink.Message
	ends       []int // by record of the batch: how many messages it ends after
}

func newOutgoing(s *Sink, clusterUID string) *outgoing {
	o := &outgoing{clusterUID: clusterUID, encoder: s.Encoder}
	if s.Patches {
		o.chain = chain.New()
	}
	return o
}

// encode makes the messages of the batch, up to the record whose format fails; a record may have several. The chain
// says which of them are patches.
func (o *outgoing) encode(ctx context.Context, todo []due) (messages []sink.Message, err error) {
	batch := make([]*change.Record, len(todo))
	for i := range batch {
		batch[i] = todo[i].Record
	}
	if o.chain == nil {
		return o.encodeAs(ctx, batch, asItIs)
	}
	o.chain.Begin()
	return o.encodeAs(ctx, batch, o.chain.Next)
}

func asItIs(rec *change.Record) *change.Record { return rec }

func (o *outgoing) encodeAs(ctx context.Context, batch []*change.Record, form func(*change.Record) *change.Record) (messages []sink.Message, err error) {
	o.encoder.Reset()
	o.messages, o.ends = o.messages[:0], o.ends[:0]
	for _, rec := range batch {
		if o.messages, err = o.encoder.Encode(ctx, o.messages, form(rec)); err != nil {
			break
		}
		o.ends = append(o.ends, len(o.messages))
	}
	return o.messages, err
}

// messageOf is what the sink would be given of the record, never as a patch. Of one that cannot be encoded it is the id
// alone.
func (o *outgoing) messageOf(ctx context.Context, rec *change.Record) (*sink.Message, error) {
	messages, err := o.encodeAs(ctx, []*change.Record{rec}, asItIs)
	var rejected *sink.RejectedError
	switch {
	case err == nil:
		return &messages[0], nil
	case errors.As(err, &rejected):
		return &sink.Message{ID: rec.ID(o.clusterUID).String()}, nil
	}
	return nil, err
}

// written tells the chain that the first n records of the batch are in the log, and no other.
func (o *outgoing) written(n int) {
	if o.chain != nil {
		o.chain.Wrote(n)
	}
}

// doubted tells the chain that nobody knows what is in the log.
func (o *outgoing) doubted() {
	if o.chain != nil {
		o.chain.Break()
	}
}

// encoded is how many records of the last batch have messages.
func (o *outgoing) encoded() int { return len(o.ends) }

// recordOf is the record that the message was made of, both as places in the last batch.
func (o *outgoing) recordOf(message int) int {
	return sort.Search(len(o.ends), func(i int) bool { return o.ends[i] > message })
}
