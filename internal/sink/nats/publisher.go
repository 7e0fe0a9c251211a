package nats

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	natsgo "github.com/nats-io/nats.go"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// errMisplaced is an acknowledgement for another place than the message asked for.
var errMisplaced = errors.New("message stored at another sequence than expected")

// publisher writes one batch, in order, with one acknowledgement a message and many messages under way.
//
// Message i of what is left expects the stream to end at base+i, so the server stores it at base+i+1 or not at all.
// From this follows all that I3 asks for:
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
// that it expects. Two rules keep the damage away. The first message goes alone, so a writer that was replaced long ago
// stores nothing; and of one object only one message is under way (I3), so in a collision of two writers an object's
// change is never stored without the one before it. Settle then finds the other's message, and the run ends (I10).
type publisher struct {
	sink     *Sink
	batch    []sink.Message
	previous []int // the message before it of the same object, or -1
	envelope envelope

	start      int // the messages before it are stored
	base       uint64
	first      uint64 // the reply's number of message start
	generation uint64
	sent       int
	acked      int
	done       []bool // those at and after acked may be true
	bytes      int    // sent and not acknowledged
	unsure     bool   // something may be stored that was not acknowledged
}

// publish makes the batch durable (I1).
func (s *Sink) publish(ctx context.Context, batch []sink.Message) error {
	if err := ctx.Err(); err != nil {
		return s.final(ctx, "write to", err)
	}
	p := &publisher{sink: s, batch: batch, previous: predecessors(batch), done: make([]bool, len(batch))}
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
		var again *reopenError
		if errors.As(err, &again) {
			return err
		}
		if p.acked > before {
			wait.Reset()
		}
		s.options.Retry(reason(err), err)
		pause(ctx, wait.NextBackOff(), s.conn.changed)
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
	stop := context.AfterFunc(ctx, func() { c.fail(ctx.Err()) }) // a socket may take nothing, and knows no context
	defer func() {
		if !stop() {
			c.fail(ctx.Err()) // now, and not when its goroutine comes to it, in the middle of the next Write
		}
	}()
	if err := c.ready(ctx); err != nil {
		return err
	}
	if p.unsure {
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
	if errors.Is(err, errSilent) {
		return errors.Join(err, p.sink.conn.nc.ForceReconnect())
	}
	return err
}

// send publishes the batch from start on, and returns when all of it is acknowledged or something is wrong.
func (p *publisher) send(ctx context.Context) error {
	c := p.sink.conn
	p.start, p.sent, p.bytes = p.acked, p.acked, 0
	clear(p.done[p.acked:])
	p.base, p.first, p.generation = p.sink.stream.place.Seq, c.number+1, c.generation()
	for p.acked < len(p.batch) {
		for p.sent < len(p.batch) && p.admits(p.sent) {
			if err := p.publish(p.sent); err != nil {
				return err
			}
		}
		if err := p.receive(ctx); err != nil {
			return err
		}
	}
	return nil
}

// admits says whether message i may follow what is under way.
func (p *publisher) admits(i int) bool {
	switch limits := &p.sink.tuning; {
	case i == p.acked:
		return true // nothing is under way
	case p.acked == p.start: // the first one goes alone
		return false
	case p.previous[i] >= p.acked: // one of an object at a time
		return false
	default:
		return i-p.acked < limits.pending && p.bytes+p.batch[i].Size() <= limits.bytes
	}
}

func (p *publisher) publish(i int) error {
	c := p.sink.conn
	_, reply := c.ask()
	expected := p.base + uint64(i-p.start)
	if err := c.nc.PublishMsg(p.envelope.fill(&p.batch[i], expected, reply)); err != nil {
		return &refusal{index: i, err: err}
	}
	p.bytes += p.batch[i].Size()
	p.sent++
	return nil
}

// receive waits for a reply, and takes those that came with it.
func (p *publisher) receive(ctx context.Context) error {
	c := p.sink.conn
	m, err := c.next(ctx, p.generation)
	for err == nil {
		if err = p.take(m); err != nil {
			return err
		}
		select {
		case m = <-c.replies:
		default:
			return nil
		}
	}
	return err
}

func (p *publisher) take(m *natsgo.Msg) error {
	number, ok := p.sink.conn.numberOf(m)
	i := p.start + int(number-p.first)
	if !ok || number < p.first || i >= p.sent {
		return nil // the reply to an attempt that was given up
	}
	seq, err := parseAck(m)
	if err != nil {
		return &refusal{index: i, err: err}
	}
	if seq != p.base+uint64(i-p.start)+1 {
		return &refusal{index: i, err: errMisplaced}
	}
	p.done[i] = true
	for p.acked < p.sent && p.done[p.acked] {
		p.bytes -= p.batch[p.acked].Size()
		p.acked++
		p.sink.stored(1)
	}
	return nil
}

// stored moves the sink's place on.
func (s *Sink) stored(n int) {
	s.stream.place.Seq += uint64(n)
	s.stream.confirmed = true
	s.moved = 0
}

// refusal is the server's answer, or the client library's, to one message.
type refusal struct {
	index int
	err   error
}

func (r *refusal) Error() string {
	return fmt.Sprintf("publish message %d of the batch: %s", r.index, detail(r.err))
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
		return &sink.RejectedError{Index: refused.index, Reason: "too_large", Err: terse{refused.err}}
	case codeOf(err) == codeSealed:
		return permanent("write to stream %s: it was sealed: name another stream", p.sink.stream.name)
	}
	return err
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
	err := parseAnswer(m, &ack)
	return ack.Seq, err
}

// predecessors finds for each message the last one before it that speaks of the same object.
func predecessors(batch []sink.Message) []int {
	last := make(map[string]int, len(batch))
	previous := make([]int, len(batch))
	for i := range batch {
		object := objectOf(batch[i].ID)
		previous[i] = -1
		if j, found := last[object]; found {
			previous[i] = j
		}
		last[object] = i
	}
	return previous
}

// objectOf is the part of an id that names the object: "cluster/resource/namespace/name".
func objectOf(id string) string {
	end := 0
	for range 4 {
		slash := strings.IndexByte(id[end:], '/')
		if slash < 0 {
			return id
		}
		end += slash + 1
	}
	return id[:end]
}
