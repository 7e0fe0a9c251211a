package nats

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	natsgo "github.com/nats-io/nats.go"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

// publisher writes one batch, in order, with many messages under way, each with an acknowledgement of its own.
//
// Message i of what is left expects the stream to end at base+i, so the server stores it at base+i+1 or not at all. If
// it is refused or lost, so is all after it; and a second copy is refused, however late a broken connection brings it.
//
// So after a failure nothing needs to settle: settle reads what is stored after the last acknowledged message and the
// rest is sent. If a late copy overtakes the rest, the rest is refused, and the next settle finds it stored.
//
// A second writer breaks that: it stores something at base+i+1, message i is refused, and i+1 finds the end that it
// expects. Settle then finds the other's message, and the run ends (I10). Three rules keep the harm away. The first
// message goes alone, so a writer that was replaced long ago stores nothing. Of one object only one message is under
// way (I3), and a frame waits for all before it, so in a collision of two writers neither an object's change nor the
// end of a snapshot is ever stored without what was before it.
type publisher struct {
	*Sink
	batch  []sink.Message
	acked  int  // the messages before it are stored
	unsure bool // something may be stored that was not acknowledged

	// Of one attempt:
	start  int    // the messages before it were stored already
	base   uint64 // where the stream ended
	during uint64 // the connection's generation
	sent   int
	bytes  int            // sent and not acknowledged
	last   map[string]int // by object: its message that was sent last
	done   []bool         // those at and after acked may be true
	first  uint64         // the number of the reply to the message at start
}

// expected is where the stream ends before message i.
func (p *publisher) expected(i int) uint64 { return p.base + uint64(i-p.start) }

// advance takes the messages before end for stored.
func (p *publisher) advance(end int) {
	for ; p.acked < end; p.acked++ {
		p.bytes -= p.batch[p.acked].Size()
		p.stream.confirmed++
		p.stream.place.Seq++
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

// send publishes the batch from what is acknowledged on, and returns when all of it is or something is wrong.
func (p *publisher) send(ctx context.Context) error {
	p.start, p.base, p.during = p.acked, p.stream.place.Seq, p.conn.Generation()
	p.sent, p.bytes, p.first = p.acked, 0, p.conn.Number+1
	p.last, p.done = map[string]int{}, make([]bool, len(p.batch))
	for p.acked < len(p.batch) {
		for p.sent < len(p.batch) && p.admits(p.sent) {
			if err := p.post(p.sent); err != nil {
				return err
			}
		}
		if err := p.receive(ctx); err != nil {
			return err
		}
	}
	return nil
}

// receive waits for a reply, and takes those that came with it.
func (p *publisher) receive(ctx context.Context) error {
	m, err := p.conn.Next(ctx, p.during)
	for err == nil {
		if err = p.take(m); err != nil {
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

// admits says whether message i may follow what is under way.
func (p *publisher) admits(i int) bool {
	last, sent := p.last[p.batch[i].Object()]
	switch {
	case i == p.acked:
		return true // nothing is under way
	case p.acked == p.start: // the first one goes alone
		return false
	case change.ParseOp(p.batch[i].Op).IsFrame(): // Open takes what is before it for written
		return false
	case sent && last >= p.acked: // one of an object at a time
		return false
	}
	return i-p.acked < p.tuning.pending && p.bytes+p.batch[i].Size() <= p.tuning.bytes
}

// post sends message i.
func (p *publisher) post(i int) error {
	_, reply := p.conn.Ask()
	p.last[p.batch[i].Object()] = i
	if err := p.conn.NC.PublishMsg(p.stream.outgoing(&p.batch[i], p.expected(i), reply)); err != nil {
		return &refusal{index: i, err: err}
	}
	p.bytes += p.batch[i].Size()
	p.sent++
	return nil
}

// take takes a reply.
func (p *publisher) take(m *natsgo.Msg) error {
	number, ok := p.conn.NumberOf(m)
	if !ok || number < p.first || number-p.first >= uint64(p.sent-p.start) {
		return nil // the reply to an attempt that was given up
	}
	i := p.start + int(number-p.first)
	seq, err := parseAck(m)
	if err != nil {
		return &refusal{index: i, err: err}
	}
	if seq != p.expected(i)+1 {
		return &refusal{index: i, err: errMisplaced}
	}
	p.done[i] = true
	end := p.acked
	for end < p.sent && p.done[end] {
		end++
	}
	p.advance(end)
	return nil
}
