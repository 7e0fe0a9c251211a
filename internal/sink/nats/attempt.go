package nats

import (
	"context"
	"errors"

	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

// attempt finds out what an earlier one left in doubt, and sends the rest.
func (p *publisher) attempt(ctx context.Context) error {
	c, err := p.session.alive(ctx)
	if err != nil {
		return err
	}
	defer c.EndWith(ctx)()
	if err := c.Ready(ctx); err != nil {
		return err
	}
	if p.unsure || p.session.stream.shared && p.session.generation != c.Generation() {
		if err := p.settle(ctx); err != nil {
			return p.revive(err)
		}
	}
	p.unsure = true
	err = p.send(ctx)
	p.unsure = err != nil
	return p.classify(err)
}

// revive takes a connection that answers nothing for a dead one: the library would notice only after some pings.
func (p *publisher) revive(err error) error {
	if errors.Is(err, conn.ErrSilent) {
		return errors.Join(err, p.session.conn.NC.ForceReconnect())
	}
	return err
}

// send publishes the batch from start on, and returns when all of it is acknowledged or something is wrong.
func (p *publisher) send(ctx context.Context) error {
	p.start, p.sent, p.bytes = p.acked, p.acked, 0
	p.base, p.generation = p.session.stream.place.Seq, p.session.conn.Generation()
	p.session.conn.Outbox.Reset(p.session.conn)
	if len(p.batch)-p.start > 1 && !p.single { // one message needs no batch
		switch p.session.stream.mode {
		case modeFast:
			return p.sendFast(ctx)
		case modeAtomic:
			return p.sendAtomic(ctx)
		}
	}
	return p.sendOrdered(ctx)
}
