package nats

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

// errMisplaced is an acknowledgement for another place than the message asked for.
var errMisplaced = errors.New("message stored at another sequence than expected")

// publisher writes one batch, in order, with many messages under way.
//
// Message i of what is left expects the stream to end at base+i, so the server stores it at base+i+1 or not at all.
// From this follows all that I3 asks for, whichever way the messages are sent:
//
//   - No gap. If message i is refused or lost, the stream does not reach base+i+1, and i+1 is refused.
//   - No duplicate, however often a message is sent: for its second copy the stream does not end at base+i any more.
//   - A copy that a broken connection left somewhere on its way does no harm, whenever it arrives. If it fits, the
//     message is stored at its place, and the copy that is sent after it is refused; if it does not fit, it is refused.
//
// So after a failure nothing needs to settle: settle reads what is stored after the last acknowledged message and the
// rest is sent. If a late copy overtakes the rest, the rest is refused, and the next settle finds it stored.
//
// A second writer breaks the first point: it stores something at base+i+1, message i is refused, and i+1 finds the end
// that it expects. Each way of sending keeps that damage away by a rule of its own. Settle then finds the other's
// message, and the run ends (I10).
type publisher struct {
	sink     *Sink
	batch    []sink.Message
	envelope envelope

	start      int // the messages before it are stored
	base       uint64
	generation uint64
	sent       int
	acked      int
	bytes      int  // sent and not acknowledged
	unsure     bool // something may be stored that was not acknowledged
	single     bool // no batches any more
}

// publish makes the batch durable (I1).
func (s *Sink) publish(ctx context.Context, batch []sink.Message) error {
	if err := ctx.Err(); err != nil {
		return s.final(ctx, "write to", err)
	}
	p := &publisher{sink: s, batch: batch}
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
		var again *conn.EndedError
		if errors.As(err, &again) {
			return err
		}
		if p.acked > before {
			wait.Reset()
		}
		s.options.Retry(reason(err), err)
		pause(ctx, wait.NextBackOff(), s.conn.Changed)
		if ctx.Err() != nil {
			return s.final(ctx, "write to", err)
		}
	}
}

// attempt finds out what an earlier one left in doubt, and sends the rest.
func (p *publisher) attempt(ctx context.Context) error {
	c, err := p.sink.alive(ctx)
	if err != nil {
		return err
	}
	defer c.EndWith(ctx)()
	if err := c.Ready(ctx); err != nil {
		return err
	}
	if p.unsure || p.sink.stream.shared && p.sink.generation != c.Generation() {
		if err := p.settle(ctx); err != nil {
			return p.revive(err)
		}
	}
	p.unsure = true
	err = p.send(ctx)
	p.unsure = err != nil
	return p.verdict(err)
}

// revive takes a connection that answers nothing for a dead one: the library would notice only after some pings.
func (p *publisher) revive(err error) error {
	if errors.Is(err, conn.ErrSilent) {
		return errors.Join(err, p.sink.conn.NC.ForceReconnect())
	}
	return err
}

// send publishes the batch from start on, and returns when all of it is acknowledged or something is wrong.
func (p *publisher) send(ctx context.Context) error {
	p.start, p.sent, p.bytes = p.acked, p.acked, 0
	p.base, p.generation = p.sink.stream.place.Seq, p.sink.conn.Generation()
	p.sink.conn.Outbox.Reset(p.sink.conn)
	if len(p.batch)-p.start > 1 && !p.single { // one message needs no batch
		switch p.sink.stream.way {
		case wayFast:
			return p.sendFast(ctx)
		case wayAtomic:
			return p.sendAtomic(ctx)
		}
	}
	return p.sendOrdered(ctx)
}

// expected is where the stream ends before message i.
func (p *publisher) expected(i int) uint64 { return p.base + uint64(i-p.start) }

// fits says whether the window has room for message i; it always has for one message.
func (p *publisher) fits(i int) bool {
	limits := &p.sink.tuning
	return i == p.acked || i-p.acked < limits.pending && p.bytes+p.batch[i].Size() <= limits.bytes
}

// advance takes the messages before end for stored.
func (p *publisher) advance(end int) {
	for ; p.acked < end; p.acked++ {
		p.bytes -= p.batch[p.acked].Size()
		p.sink.stored(1)
	}
}

// stored moves the sink's place on.
func (s *Sink) stored(n int) {
	if !s.stream.shared {
		s.stream.place.Seq += uint64(n)
	}
	s.stream.confirmed = true
	s.moved = 0
}

// refusal is the server's answer, or the client library's, to one message.
type refusal struct {
	index int
	err   error
}

func (r *refusal) Error() string {
	return fmt.Sprintf("publish message %d of the batch: %s", r.index, conn.Detail(r.err))
}
func (r *refusal) Unwrap() error { return r.err }

// verdict turns a refusal into the contract's error, if another attempt would be refused, too. Only the first message
// of an attempt decides: the ones behind it are refused because of it, and none of them is under way yet, to be stored
// when the caller has gone on without the message.
func (p *publisher) verdict(err error) error {
	var refused *refusal
	if !errors.As(err, &refused) || refused.index != p.start {
		return err
	}
	switch {
	case tooLarge(err):
		return &sink.RejectedError{Index: refused.index, Reason: "too_large", Err: conn.Terse{Err: refused.err}}
	case codeOf(err) == codeSealed:
		return permanent("write to stream %s: it was sealed: name another stream", p.sink.stream.name)
	}
	return err
}
