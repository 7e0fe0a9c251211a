package nats

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

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
	batch  []sink.Message
	acked  int  // the messages before it are stored
	unsure bool // something may be stored that was not acknowledged

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

// post sends message i.
func (p *publisher) post(i int, m *natsgo.Msg) error {
	if err := p.conn.NC.PublishMsg(m); err != nil {
		return &refusal{index: i, err: err}
	}
	p.bytes += p.batch[i].Size()
	p.sent++
	return nil
}

// receive waits so long for a reply, and takes those that came with it.
func (p *publisher) receive(ctx context.Context, within time.Duration, take func(*natsgo.Msg) error) error {
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

// orderedWindow sends messages one by one, each with an acknowledgement of its own, as servers of every age understand
// it.
//
// Two rules keep a second writer from harm. The first message goes alone, so a writer that was replaced long ago stores
// nothing; and of one object only one message is under way (I3), so in a collision of two writers an object's change is
// never stored without the one before it.
//
// On a stream that others write to, too, no message can say what it follows. There the second rule keeps the order of
// each object, and ids keep the copies of a message apart. An id that was stored before what is known of its object is
// that of an earlier telling, which proves nothing: the message goes out again under another id. Frames go alone, so
// none of them overtakes that.
type orderedWindow struct {
	*publisher
	last    map[string]int // by object: its message that was sent last
	done    []bool         // those at and after acked may be true
	first   uint64         // the number of the first reply
	asked   []int          // the messages that the replies are for, from first on
	earlier map[int]uint64 // where the server has the same message of an earlier telling
}

func (p *publisher) sendOrdered(ctx context.Context) error {
	o := &orderedWindow{publisher: p, last: map[string]int{}, done: make([]bool, len(p.batch)), first: p.conn.Number + 1, earlier: map[int]uint64{}}
	for p.acked < len(p.batch) {
		for p.sent < len(p.batch) && o.admits(p.sent) {
			if err := o.publish(p.sent); err != nil {
				return err
			}
		}
		if err := o.receive(ctx, o.conn.Reply, o.take); err != nil {
			return err
		}
	}
	return nil
}

// admits says whether message i may follow what is under way.
func (o *orderedWindow) admits(i int) bool {
	last, sent := o.last[o.batch[i].Object()]
	switch {
	case i == o.acked:
		return true // nothing is under way
	case o.acked == o.start: // the first one goes alone
		return false
	case sent && last >= o.acked: // one of an object at a time
		return false
	case o.stream.shared && o.batch[i].Reason != "": // a frame comes after all that goes out again before it
		return false
	}
	return o.fits(i)
}

func (o *orderedWindow) publish(i int) error {
	_, reply := o.conn.Ask()
	o.asked = append(o.asked, i)
	o.last[o.batch[i].Object()] = i
	out := o.stream.outgoing(&o.batch[i], reply)
	if o.stream.shared {
		id := messageID(o.stream.place.Writer, o.batch[i].Destination, o.batch[i].ID)
		if earlier := o.earlier[i]; earlier > 0 {
			id += tellingAgain + strconv.FormatUint(earlier, 10)
		}
		out.Header.Set(headerMessageID, id)
	} else {
		expect(out, o.expected(i))
	}
	return o.post(i, out)
}

func (o *orderedWindow) take(m *natsgo.Msg) error {
	number, ok := o.conn.NumberOf(m)
	if !ok || number < o.first || number-o.first >= uint64(len(o.asked)) {
		return nil // the reply to an attempt that was given up
	}
	i := o.asked[number-o.first]
	seq, err := parseAck(m)
	if err != nil {
		return &refusal{index: i, err: err}
	}
	duplicate := bytes.Contains(m.Data, []byte(`"duplicate"`))
	if duplicate && o.stream.shared && seq <= *o.stream.told.of(&o.batch[i]) {
		o.earlier[i] = seq
		o.sent, o.bytes = o.sent-1, o.bytes-o.batch[i].Size() // it is under way once
		return o.publish(i)
	}
	if err := o.place(i, seq, duplicate); err != nil {
		return err
	}
	o.done[i] = true
	end := o.acked
	for end < o.sent && o.done[end] {
		end++
	}
	o.advance(end)
	return nil
}

// place checks where message i was stored.
func (o *orderedWindow) place(i int, seq uint64, duplicate bool) error {
	switch s := &o.stream; {
	case !s.shared && seq != o.expected(i)+1:
		return &refusal{index: i, err: errMisplaced}
	case s.shared && seq <= o.base && !duplicate:
		return conn.Ended("write to stream %s: it is shorter than it was: open the sink again", s.name)
	case s.shared:
		s.place.Seq = max(s.place.Seq, seq)
		*s.told.of(&o.batch[i]) = seq
	}
	return nil
}

// The operations of fast ingest (ADR-50), and the most messages that the server leaves without an acknowledgement.
const (
	opStart  = 0
	opAppend = 1
	opCommit = 2 // append, and end the batch
	opPing   = 4

	mostFlow = 500
)

// fastBatch sends what is left as one batch of fast ingest (ADR-50), which a server knows from 2.14 on: it acknowledges
// every so many messages, up to one of which all are stored, and the last one of the batch. The batch ends with the
// Write, so it never waits for changes, and the server's rule that forgets a batch after ten idle seconds does not
// bite. With "fail" the server ends a batch at the first message that is refused or missing and stores none after it.
// A leader that changes goes on with the batch where its own log ends; what got lost with the old one is the gap that
// ends it.
type fastBatch struct {
	*publisher
	prefix string // of this batch's replies, and only of them
	pings  int    // in a row
	cause  error  // the batch failed, and the server is still to say how much of it is stored
}

func (p *publisher) sendFast(ctx context.Context) error {
	f := newFastBatch(p)
	for p.acked < len(p.batch) {
		for f.cause == nil && p.sent < len(p.batch) && p.fits(p.sent) {
			if err := f.publish(p.sent); err != nil {
				return err
			}
		}
		if err := f.receive(ctx); err != nil {
			return err
		}
	}
	return nil
}

func newFastBatch(p *publisher) *fastBatch {
	return &fastBatch{publisher: p, prefix: p.conn.Batch() + strconv.Itoa(p.flow()) + ".fail."}
}

// flow is after how many messages to ask for an acknowledgement: half a window brings one, whatever is in it.
func (p *publisher) flow() int {
	largest := 1
	for i := p.start; i < len(p.batch); i++ {
		largest = max(largest, p.batch[i].Size())
	}
	return max(1, min(mostFlow, p.tuning.pending/2, p.tuning.bytes/2/largest))
}

func (f *fastBatch) publish(i int) error {
	op := opAppend
	switch i {
	case f.start:
		op = opStart
	case len(f.batch) - 1:
		op = opCommit
	}
	out := f.stream.outgoing(&f.batch[i], f.reply(i-f.start+1, op))
	expect(out, f.expected(i))
	return f.post(i, out)
}

// reply is the subject that carries a message's place in the batch.
func (f *fastBatch) reply(seq, op int) string {
	text := append(make([]byte, 0, 128), f.prefix...)
	text = strconv.AppendInt(text, int64(seq), 10)
	text = strconv.AppendInt(append(text, '.'), int64(op), 10)
	return string(append(text, ".$FI"...))
}

// receive waits for replies. Where none comes, it asks from time to time whether the server has the batch and all that
// was sent: a new leader may not, and would wait for the rest without a word.
func (f *fastBatch) receive(ctx context.Context) error {
	const pings = 4
	err := f.publisher.receive(ctx, f.conn.Reply/(pings+1), f.take)
	if !errors.Is(err, conn.ErrSilent) {
		return err
	}
	if f.pings++; f.pings > pings {
		return cmp.Or(f.cause, err)
	}
	return f.ping()
}

func (f *fastBatch) ping() error {
	return f.conn.NC.PublishRequest(f.batch[f.sent-1].Destination, f.reply(f.sent-f.start, opPing), nil)
}

// answer is any of the server's answers to a batch: BatchFlowAck, BatchFlowGap, BatchFlowErr, and a PubAck that ends
// it.
type answer struct {
	Type  string              `json:"type"` // "ack", "gap", "err", or none
	Seq   uint64              `json:"seq"`  // in the batch; of a PubAck in the stream
	Count uint64              `json:"count"`
	Error *jetstream.APIError `json:"error"`
}

func (f *fastBatch) take(m *natsgo.Msg) error {
	rest, ours := strings.CutPrefix(m.Subject, f.prefix)
	if !ours {
		return nil // the reply to an attempt that was given up
	}
	if conn.NoResponders(m) {
		return f.refused(rest, natsgo.ErrNoResponders)
	}
	var a answer
	if err := json.Unmarshal(m.Data, &a); err != nil {
		return fmt.Errorf("read the answer to a batch: %w", err)
	}
	switch {
	case a.Error != nil:
		return f.failed(&a, f.refused(rest, a.Error))
	case a.Type == "gap":
		return f.failed(&a, errGap)
	case a.Type == "ack" && a.Seq > uint64(f.sent-f.start):
		return errMisplaced
	case a.Type == "ack": // of the batch's first messages
		if end := f.start + int(a.Seq); end > f.acked {
			f.pings = 0
			f.advance(end)
		}
		return nil
	case a.Count > uint64(f.sent-f.start) || a.Seq != f.base+a.Count: // it ends the batch
		return cmp.Or(f.cause, errMisplaced)
	}
	if f.advance(f.start + int(a.Count)); f.acked < len(f.batch) {
		return cmp.Or(f.cause, errEnded)
	}
	return nil
}

// failed notes why the batch ends. The server tells what it stored of the batch when all of that is stored, if it has
// the batch.
func (f *fastBatch) failed(a *answer, err error) error {
	refused, is := errors.AsType[*refusal](err)
	switch {
	case f.cause != nil:
		return nil
	case is && refused.index == f.start, codeOf(err) == codeUnknownBatch:
		return err
	}
	f.cause = err
	if a.Type == "" { // refused before the server looked for its batch, which therefore waits
		return f.ping()
	}
	return nil
}

// refused finds which message the answer is for: its reply subject goes on with the number in the batch.
func (f *fastBatch) refused(rest string, err error) error {
	digits, _, _ := strings.Cut(rest, ".")
	seq, failed := strconv.Atoi(digits)
	if i := f.start + seq - 1; failed == nil && i >= f.start && i < f.sent {
		return &refusal{index: i, err: err}
	}
	return err
}
