package checkpoint

import (
	"fmt"
	"sort"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// MaxListeners is the most listeners that a Tracker tells apart.
const MaxListeners = 64

// Tracker knows which records of one stream are delivered. Records are added in order, acknowledged by each listener
// in any order (I1), and given back as the contiguous prefix that nobody waits for any more (I2): a position taken
// from that prefix never passes over an undelivered record.
//
// It is pure: no lock, clock, goroutine or I/O. The zero value is ready for use. Its memory is bounded by what the
// listeners' queues let in (I6), and shrinks with it.
type Tracker struct {
	ring   []tracked // its length is zero or a power of two
	head   int
	length int
	last   uint64 // the Seq added last
}

// tracked is one record with the listeners that want it, and those of them that have not acknowledged it.
type tracked struct {
	rec             *change.Record
	wanted, missing uint64
	spared          uint64 // those that acknowledged it without having written it
}

// minRing is the ring's smallest length.
const minRing = 64

// First is the Seq of the oldest record that Advance has not given back, false where there is none.
func (t *Tracker) First() (seq uint64, ok bool) {
	if t.length == 0 {
		return 0, false
	}
	return t.at(0).rec.Seq, true
}

// Waits is when the oldest record was received that Advance has not given back, and the listeners that have not
// acknowledged it; false where there is none.
func (t *Tracker) Waits() (received time.Time, missing uint64, ok bool) {
	if t.length == 0 {
		return time.Time{}, 0, false
	}
	return t.at(0).rec.Received, t.at(0).missing, true
}

// Add appends a record that the listeners in the bit mask wanted must acknowledge; 0 is a record that nobody waits
// for, such as a bookmark. A Seq that is not above the one before is an error: the order of the stream is lost then.
func (t *Tracker) Add(rec *change.Record, wanted uint64) error {
	if rec.Seq <= t.last {
		return fmt.Errorf("add record %d: it comes after record %d, and numbers must rise", rec.Seq, t.last)
	}
	if t.length == len(t.ring) {
		t.resize(max(minRing, 2*len(t.ring)))
	}
	t.last = rec.Seq
	t.length++
	*t.at(t.length - 1) = tracked{rec: rec, wanted: wanted, missing: wanted}
	return nil
}

// Ack records that the listener holds the record durably. It is an error if the record is not waited for, if the
// listener does not want it, or has acknowledged it before: each is a broken promise between pipeline and sink.
func (t *Tracker) Ack(listener int, seq uint64) error {
	_, err := t.ack(listener, seq)
	return err
}

// Spare is Ack of a listener that need not write the record: its sink has it, or something newer of the same object.
func (t *Tracker) Spare(listener int, seq uint64) error {
	slot, err := t.ack(listener, seq)
	if err == nil {
		slot.spared |= 1 << listener
	}
	return err
}

func (t *Tracker) ack(listener int, seq uint64) (*tracked, error) {
	if listener < 0 || listener >= MaxListeners {
		return nil, fmt.Errorf("acknowledge record %d: there is no listener %d", seq, listener)
	}
	slot := t.find(seq)
	if slot == nil {
		return nil, fmt.Errorf("acknowledge record %d: listener %d names a record that is not waited for (%s)", seq, listener, t.span())
	}
	bit := uint64(1) << listener
	if slot.wanted&bit == 0 {
		return nil, fmt.Errorf("acknowledge record %d: listener %d does not want it", seq, listener)
	}
	if slot.missing&bit == 0 {
		return nil, fmt.Errorf("acknowledge record %d: listener %d did so before", seq, listener)
	}
	slot.missing &^= bit
	return slot, nil
}

// Excuse makes the tracker wait for the listener no more.
func (t *Tracker) Excuse(listener int) {
	for i := range t.length {
		slot := t.at(i)
		slot.wanted &^= 1 << listener
		slot.missing &^= 1 << listener
	}
}

// AdvanceOver removes the records that are delivered together with all before them (I2). The listeners in the bit mask
// excused need not have acknowledged. Each record that is removed is given with those of them that have not, in the
// stream's order: their copy must be durable by other means before its position is.
func (t *Tracker) AdvanceOver(excused uint64, give func(rec *change.Record, missing uint64)) {
	for t.length > 0 && t.at(0).missing&^excused == 0 {
		slot := *t.at(0)
		*t.at(0) = tracked{} // the ring must not keep the object alive
		t.head = (t.head + 1) & (len(t.ring) - 1)
		t.length--
		give(slot.rec, slot.missing)
	}
	t.shrink()
}

// at is the slot of the i-th record, counted from the oldest.
func (t *Tracker) at(i int) *tracked { return &t.ring[(t.head+i)&(len(t.ring)-1)] }

// find is the slot of the record, nil where there is none.
func (t *Tracker) find(seq uint64) *tracked {
	i := sort.Search(t.length, func(i int) bool { return t.at(i).rec.Seq >= seq })
	if i == t.length || t.at(i).rec.Seq != seq {
		return nil
	}
	return t.at(i)
}

// shrink gives half of a ring back that is three quarters empty; the rest goes with the next calls, so that a stream
// with bursts does not make its ring anew for each.
func (t *Tracker) shrink() {
	if len(t.ring) > minRing && t.length <= len(t.ring)/4 {
		t.resize(len(t.ring) / 2)
	}
}

// resize moves the records to a ring of the length, a power of two.
func (t *Tracker) resize(length int) {
	ring := make([]tracked, length)
	for i := range t.length {
		ring[i] = *t.at(i)
	}
	t.ring, t.head = ring, 0
}

// span says in words which records are waited for.
func (t *Tracker) span() string {
	if t.length == 0 {
		return "none is"
	}
	return fmt.Sprintf("%d to %d are", t.at(0).rec.Seq, t.last)
}
