package nats

import (
	"context"
	"errors"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

// publish makes the batch durable (I1).
func (s *Sink) publish(ctx context.Context, batch []sink.Message) error {
	if err := ctx.Err(); err != nil {
		return s.final(ctx, "write to", err)
	}
	p := &publisher{Sink: s, batch: batch}
	defer func() {
		s.left.doubt = nil
		for _, m := range batch[p.acked:] { // the rest of it is not ours to keep
			s.left.doubt = append(s.left.doubt, sink.Message{ID: m.ID, Destination: m.Destination})
		}
	}()
	wait := newBackOff()
	for {
		before := p.acked
		err := p.attempt(ctx)
		if err == nil {
			return nil
		}
		if end := s.final(ctx, "write to", err); end != nil {
			return end
		}
		if _, is := errors.AsType[*conn.EndedError](err); is {
			return err
		}
		if p.acked > before {
			wait.Reset()
		}
		s.options.Retry(reason(err), err)
		if !sink.Pause(ctx, wait.NextBackOff(), s.conn.Changed) {
			return s.final(ctx, "write to", err)
		}
	}
}

// attempt finds out what an earlier one left in doubt, and sends the rest.
func (p *publisher) attempt(ctx context.Context) error {
	c, err := p.alive(ctx)
	if err != nil {
		return err
	}
	defer c.EndWith(ctx)()
	if err := c.Ready(ctx); err != nil {
		return err
	}
	if p.unsure || p.options.Shared && p.generation != c.Generation() {
		n, err := p.settle(ctx, p.batch[p.acked:])
		if errors.Is(err, conn.ErrSilent) { // the library would notice only after some pings
			return errors.Join(err, c.NC.ForceReconnect())
		}
		if err != nil {
			return err
		}
		p.acked += n
	}
	p.unsure = true
	err = p.send(ctx)
	p.unsure = err != nil
	return p.classify(err)
}

// send publishes the batch from what is acknowledged on, and returns when all of it is or something is wrong.
func (p *publisher) send(ctx context.Context) error {
	p.start, p.base, p.during = p.acked, p.stream.place.Seq, p.conn.Generation()
	p.sent, p.bytes = p.acked, 0
	p.conn.ResetOutbox()
	if p.stream.batches && !p.options.Single && !p.stream.shared && len(p.batch)-p.start > 1 { // one message needs none
		return p.sendFast(ctx)
	}
	return p.sendOrdered(ctx)
}

// classify turns a refusal into the contract's error, if another attempt would be refused, too. Only the first message
// of an attempt decides: the ones after it are refused because of it, and none of them is under way yet, to be stored
// when the caller has gone on without the message.
func (p *publisher) classify(err error) error {
	refused, is := errors.AsType[*refusal](err)
	switch {
	case !is || refused.index != p.start:
	case tooLarge(err):
		return &sink.RejectedError{Index: refused.index, Reason: "too_large", Err: conn.Terse{Err: refused.err}}
	case codeOf(err) == codeSealed:
		return sink.Permanent("write to stream %s: it was sealed: name another stream", p.options.Stream)
	}
	return err
}
