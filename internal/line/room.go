package line

import (
	"context"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// windowLimit bounds the records that are not saved yet, delivered or not: without it a state that cannot be saved
// would let them grow while the sinks are well (I6). It leaves every queue its whole room, so that a sink that is stuck
// holds up those streams alone that it takes.
func windowLimit(members []Member) fifo.Limit {
	limit := fifo.Limit{Bytes: 16 << 20, Records: 1 << 14}
	for _, m := range members {
		limit.Bytes += m.Room.Bytes + BatchLimit().Bytes
		limit.Records += m.Room.Records + BatchLimit().Records
	}
	return limit
}

// aheadOfSinks is how many bytes that are not saved yet a snapshot leaves to the line while the sinks take them: its
// list can be read again, and what it has read further only takes memory, however large the queues are. After a sink
// that takes nothing it goes on up to the queues' limits, for the others' sake.
const aheadOfSinks = 4 << 20

// window is the room for what is not saved yet. It is pure; the line's mu guards it.
type window struct {
	used    *fifo.Queue   // it only counts
	changed chan struct{} // closed and made anew when something was saved
}

// reserve takes room for the record. A reconcile waits for the sinks, unless some are stuck. What is read beside the
// watch has waited already (Pace), when it held up no watch.
func (w *window) reserve(rec *change.Record, stuck func() bool) bool {
	if rec.Snapshot != nil && !rec.Snapshot.Reason.Beside() && !w.takesMore(stuck) {
		return false
	}
	return w.used.Reserve(rec.Size())
}

// takesMore says whether there is room for what can wait.
func (w *window) takesMore(stuck func() bool) bool {
	return w.used.Used().Bytes <= aheadOfSinks || stuck()
}

// leave gives the room of the records back.
func (w *window) leave(records ...*change.Record) {
	for _, rec := range records {
		w.used.Cancel(rec.Size())
	}
	w.wakeAll()
}

// wakeAll wakes all who wait for something to be saved.
func (w *window) wakeAll() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// reserve takes room in every wanted queue, one after the other. A stream that waits for one queue holds up no other
// stream, but for the room of one record in the queues before: had it to give that back, others could take it for ever.
func reserve(ctx context.Context, seats []*seat, rec *change.Record, wanted uint64) error {
	for _, s := range seats {
		if wanted&s.bit() == 0 {
			continue
		}
		if err := s.Queue.Reserve(ctx, rec); err != nil {
			cancel(seats, rec, wanted&(s.bit()-1))
			return err
		}
	}
	return nil
}

// cancel gives the room in the queues back.
func cancel(seats []*seat, rec *change.Record, wanted uint64) {
	for _, s := range seats {
		if wanted&s.bit() != 0 {
			s.Queue.Cancel(rec.Size())
		}
	}
}
