package nats

import (
	"bytes"
	"context"
	"strconv"

	natsgo "github.com/nats-io/nats.go"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

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
	previous []int          // the message before it of the same object, or -1
	done     []bool         // those at and after acked may be true
	first    uint64         // the number of the first reply
	asked    []int          // the messages that the replies are for, from first on
	earlier  map[int]uint64 // where the server has the same message of an earlier telling
}

func (p *publisher) sendOrdered(ctx context.Context) error {
	o := &orderedWindow{publisher: p, previous: predecessors(p.batch), done: make([]bool, len(p.batch)), first: p.conn.Number + 1, earlier: map[int]uint64{}}
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
	switch {
	case i == o.acked:
		return true // nothing is under way
	case o.acked == o.start: // the first one goes alone
		return false
	case o.previous[i] >= o.acked: // one of an object at a time
		return false
	case o.stream.shared && o.batch[i].Reason != "": // a frame comes after all that goes out again before it
		return false
	}
	return o.fits(i)
}

func (o *orderedWindow) publish(i int) error {
	_, reply := o.conn.Ask()
	o.asked = append(o.asked, i)
	o.envelope.fill(&o.stream, &o.batch[i], reply)
	if o.stream.shared {
		id := messageID(o.stream.place.Writer, o.batch[i].Destination, o.batch[i].ID)
		if earlier := o.earlier[i]; earlier > 0 {
			id += tellingAgain + strconv.FormatUint(earlier, 10)
		}
		o.envelope.set(headerMessageID, id)
	} else {
		o.envelope.expect(o.expected(i))
	}
	return o.post(i)
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

// predecessors finds for each message the last one before it that speaks of the same object.
func predecessors(batch []sink.Message) []int {
	last := make(map[string]int, len(batch))
	previous := make([]int, len(batch))
	for i := range batch {
		object := batch[i].Object()
		previous[i] = -1
		if j, found := last[object]; found {
			previous[i] = j
		}
		last[object] = i
	}
	return previous
}
