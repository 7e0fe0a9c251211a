package kafka

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// keep asks for the right once, of which the sink may have been told that it has it.
func (r *right) keep(ctx context.Context) error {
	err := r.acquire(ctx)
	if errors.Is(err, errUnsigned) {
		return reopen("open transactional id %s: %w", r.options.TransactionalID, err)
	}
	return err
}

// acquire asks once for the right to write, as the one who had it, so that a newer owner is not fenced by us (KIP-360).
// Who never had it takes it first, unsigned, from whoever has it.
func (r *right) acquire(ctx context.Context) error {
	if r.owner == wire.NoProducer() {
		producer, err := r.cluster.InitProducer(ctx, r.options.TransactionalID, r.tuning.unsigned(), wire.NoProducer())
		if err != nil {
			return err
		}
		r.owner, r.sign = producer, r.tuning.sign()
	}
	producer, err := r.cluster.InitProducer(ctx, r.options.TransactionalID, r.sign, r.owner)
	switch {
	case err == nil:
		r.owner, r.owned, r.renewed = producer, true, r.now()
		r.begin(producer)
	case wire.Classify(err) == wire.Fenced:
		return r.taken(ctx, err)
	}
	return err
}

// taken says whether it was another exporter that took the right from this sink.
func (r *right) taken(ctx context.Context, cause error) error {
	found, err := r.cluster.TransactionTimeout(ctx, r.options.TransactionalID)
	switch {
	case err == nil && (found == r.sign || found == r.tuning.unsigned()):
		return errUnsigned
	case err == nil:
		err = cause
	case wire.Classify(err) == wire.Retriable:
		return err
	default:
		err = fmt.Errorf("%w: who did is not known: %w: if there is no other exporter, a request came late: start this one again", cause, err)
	}
	return &sink.PermanentError{Fenced: true, Err: fmt.Errorf("open transactional id %s: another exporter has taken it over: stop it, or give each its own kafka.transactionalId: %w",
		r.options.TransactionalID, err)}
}

// unsigned is the transaction timeout of a request that takes the right from whoever has it.
func (t *tuning) unsigned() time.Duration { return t.transaction - time.Millisecond }

// sign draws a transaction timeout that hardly any other exporter has.
func (t *tuning) sign() time.Duration {
	return t.unsigned() - time.Duration(1+rand.Int64N(t.transaction.Milliseconds()/6))*time.Millisecond
}

// right is the right to write, which goes with the transactional id.
type right struct {
	*brokers
	known    *known
	producer wire.Producer
	owner    wire.Producer // as which the sink had the transactional id last; NoProducer is that it never had
	sign     time.Duration // the transaction timeout that says who it is
	renewed  time.Time     // when it got it last
	owned    bool          // the producer is the owner
	inTx     bool          // a transaction may be open
	unfenced bool          // it was told that there is no fence
}

func (r *right) enrollAnonymous(ctx context.Context) error {
	return r.persist(ctx, "get a producer id", func(ctx context.Context) error {
		producer, err := r.cluster.InitProducer(ctx, "", 0, wire.NoProducer())
		if err == nil {
			r.owned = false
			r.begin(producer)
		}
		return err
	})
}

// begin counts sequences anew, as each epoch does.
func (r *right) begin(producer wire.Producer) {
	r.producer, r.inTx = producer, false
	for p := range r.known.partitions() {
		p.sequence, p.frozen = 0, nil
	}
}

// withoutFence tells once that nobody is kept out.
func (r *right) withoutFence(err error) {
	if r.unfenced {
		return
	}
	r.unfenced = true
	r.tell("unfenced", fmt.Errorf("%w: until then a second exporter on the same topics is not kept out, and what a slow broker still holds of a killed one "+
		"may come late, after newer states of the same objects", err))
}

// renew asks for the right to write again. Where nobody answers, writing goes on: to the partitions the epoch is as
// good as before.
func (r *right) renew(ctx context.Context) error {
	err := r.lingering(ctx, r.keep)
	switch {
	case err == nil, ctx.Err() != nil, decided(err):
		return err
	case wire.Classify(err) == wire.Fatal:
		r.withoutFence(wire.Explain(err))
	default:
		r.again(err)
	}
	r.renewed = r.now().Add(time.Minute - r.tuning.renewal)
	return nil
}

func (r *right) tx() wire.Tx {
	return wire.Tx{TransactionalID: r.options.TransactionalID, Producer: r.producer}
}

// abort ends the transaction that a failed Write left open, so that readers do not wait for its timeout. If its commit
// is decided already, the coordinator refuses that, which is as well.
func (r *right) abort(ctx context.Context) error {
	if !r.inTx {
		return nil
	}
	err := r.cluster.EndTransaction(ctx, r.tx(), false)
	if err != nil && wire.Classify(err) != wire.Retriable {
		return nil
	}
	return err
}
