package nats

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

// publisher writes one batch, in order, with many messages under way.
//
// Message i of what is left expects the stream to end at base+i, so the server stores it at base+i+1 or not at all. If
// it is refused or lost, so is all after it; and a second copy is refused, however late a broken connection brings it.
//
// So after a failure nothing needs to settle: settle reads what is stored after the last acknowledged message and the
// rest is sent. If a late copy overtakes the rest, the rest is refused, and the next settle finds it stored.
//
// A second writer breaks that: it stores something at base+i+1, message i is refused, and i+1 finds the end that it
// expects. Each way to send keeps that damage away by a rule of its own. Settle then finds the other's message, and the
// run ends (I10).
type publisher struct {
	*Sink
	batch    []sink.Message
	envelope envelope
	acked    int  // the messages before it are stored
	unsure   bool // something may be stored that was not acknowledged

	// Of one attempt:
	start  int    // the messages before it were stored already
	base   uint64 // where the stream ended
	during uint64 // the connection's generation
	sent   int
	bytes  int // sent and not acknowledged
}

// expected is where the stream ends before message i.
func (p *publisher) expected(i int) uint64 { return p.base + uint64(i-p.start) }

// fits says whether the window has room for message i; it always has for one message.
func (p *publisher) fits(i int) bool {
	return i == p.acked || i-p.acked < p.tuning.pending && p.bytes+p.batch[i].Size() <= p.tuning.bytes
}

// post hands message i, which is in the envelope, to the outbox.
func (p *publisher) post(i int) error {
	if err := p.conn.Outbox.Post(&p.envelope.Message); err != nil {
		return &refusal{index: i, err: err}
	}
	p.bytes += p.batch[i].Size()
	p.sent++
	return nil
}

// receive sends what is in the outbox, waits so long for a reply, and takes those that came with it.
func (p *publisher) receive(ctx context.Context, within time.Duration, take func(*natsgo.Msg) error) error {
	if err := p.conn.Outbox.Flush(); err != nil {
		return err
	}
	m, err := p.conn.Next(ctx, p.during, within)
	for err == nil {
		if err = take(m); err != nil {
			return err
		}
		select {
		case m = <-p.conn.Replies:
		default:
			return nil
		}
	}
	return err
}

// advance takes the messages before end for stored.
func (p *publisher) advance(end int) {
	for ; p.acked < end; p.acked++ {
		p.bytes -= p.batch[p.acked].Size()
		if p.stream.confirmed++; !p.stream.shared {
			p.stream.place.Seq++
		}
	}
}

// parseAck returns the sequence of {"stream":"K8S","seq":7}. It reads what has no error in it by hand: a JSON decoder
// would take as long as all the rest of a message's way through the client.
func parseAck(m *natsgo.Msg) (uint64, error) {
	if _, rest, found := bytes.Cut(m.Data, []byte(`"seq":`)); found && !bytes.Contains(m.Data, []byte(`"error"`)) {
		digits := bytes.TrimLeft(rest, " ")
		end := bytes.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
		if seq, err := strconv.ParseUint(string(digits[:max(end, 0)]), 10, 64); err == nil {
			return seq, nil
		}
	}
	var ack struct {
		Seq uint64 `json:"seq"`
	}
	err := conn.Parse(m, &ack)
	return ack.Seq, err
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
