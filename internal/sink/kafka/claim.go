package kafka

import (
	"context"
	"errors"
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

// enroll gets a producer id, and with it the right to write, which whoever had it before loses. In transactional
// delivery that ends the transaction that a crash left open. In idempotent delivery the partitions have yet to hear of
// it (fence). Where Kafka does not let idempotent delivery have the right, it goes on without.
func (r *right) enroll(ctx context.Context) error {
	if r.options.TransactionalID == "" {
		return r.enrollAnonymous(ctx)
	}
	verb := "open transactional id " + r.options.TransactionalID
	began, taking := r.now(), &claim{right: r}
	err := r.persist(ctx, verb, func(ctx context.Context) error {
		err := taking.attempt(ctx)
		if wire.Code(err) == codeNoCoordinator && r.options.Delivery == Idempotent && r.now().Sub(began) > r.tuning.coordinator {
			return &sink.PermanentError{Err: wire.Explain(err)}
		}
		return err
	})
	var permanent *sink.PermanentError
	if !errors.As(err, &permanent) || r.options.Delivery == Transactional || wire.Classify(err) == wire.Fenced {
		return err
	}
	r.withoutFence(err)
	return r.enrollAnonymous(ctx)
}
