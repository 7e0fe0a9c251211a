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

// claim takes the right to write when the sink is opened, also from whoever took it and is silent. It is only for Open,
// which finds what others have written meanwhile.
type claim struct {
	*right
	silent time.Time // since when whoever took the right has not signed
}

// attempt asks for the right once.
func (c *claim) attempt(ctx context.Context) error {
	err := c.acquire(ctx)
	if !errors.Is(err, errUnsigned) {
		return err
	}
	if c.silent.IsZero() {
		c.silent = c.now()
	}
	if c.now().Sub(c.silent) < c.tuning.silence {
		return err
	}
	return c.takeBack(ctx)
}

// takeBack takes the right from whoever is silent. Without an answer, the next attempt looks again who has it.
func (c *claim) takeBack(ctx context.Context) error {
	before := c.owner
	c.owner = wire.NoProducer()
	err := c.acquire(ctx)
	if c.owner == wire.NoProducer() {
		c.owner = before
	} else {
		c.silent = time.Time{}
	}
	return err
}

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
