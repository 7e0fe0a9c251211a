package delivery

import (
	"context"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/line"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// member is the listener as the line sees it. The line's lock is held in every call but those for room.
type member struct{ l *Listener }

// Member is the listener as the line sees it.
func (l *Listener) Member() line.Member {
	m := member{l}
	seen := line.Member{
		Name: l.Name, Wants: l.Wants, Room: l.Sink.Queue, Coalesce: l.Coalesce, Recovery: &l.Recovery,
		Queue: m, Disk: m, Patience: m, Delivered: m.delivered, Below: l.below,
	}
	if l.Gate != nil {
		seen.Gate = &l.intake
	}
	return seen
}

// Reserve waits for room in the queue.
func (m member) Reserve(ctx context.Context, rec *change.Record) error { return m.l.reserve(ctx, rec) }

// Cancel gives room back.
func (m member) Cancel(size int) { m.l.use(func(b *fifo.Backlog) { b.Cancel(size) }) }

// Enter queues the record, if it is wanted. Whoever the end of a reconcile is for, the reconcile has told of all
// sink-only objects.
func (m member) Enter(rec *change.Record, wanted bool) (superfluous []*change.Record, wake bool) {
	if wanted || rec.Op == change.SnapshotEnd {
		m.l.Recovery.Enters(rec, m.l.clusterUID)
	}
	again := wanted && m.l.Coalesce && m.l.mayKnow(rec.Stream)
	m.l.use(func(b *fifo.Backlog) {
		if wanted {
			superfluous = b.Push(rec, again)
			wake = b.Spills() || len(superfluous) > 0
		}
		wake = b.SpillOverdue(rec.Received) || wake
	})
	for _, rec := range superfluous {
		m.l.Recovery.With(func(r *line.Recovery) { r.Log.Leaves(rec) })
	}
	if len(superfluous) > 0 {
		m.l.observer.Coalesced(m.l.Name, len(superfluous))
	}
	return superfluous, wake
}

// State says where the records are.
func (m member) State() line.DiskState {
	return query(&m.l.intake, func(b *fifo.Backlog) line.DiskState {
		return line.DiskState{Takes: b.MaySpill(), Behind: b.Behind(), Taken: b.Mixes()}
	})
}

// Spill takes the record out for disk. A replay goes back where it came from.
func (m member) Spill(rec *change.Record) bool {
	var back bool
	m.l.use(func(b *fifo.Backlog) { back = b.Spill(rec) })
	if back {
		m.l.giveBack(rec)
	}
	return rec.Replay == nil
}

// Chunks are what was taken out.
func (m member) Chunks() []fifo.Chunk { return query(&m.l.intake, (*fifo.Backlog).Chunks) }

// SpillNow begins to spool, where the listener can.
func (m member) SpillNow() bool {
	return query(&m.l.intake, func(b *fifo.Backlog) bool { return b.StartSpill() && b.MaySpill() })
}

// LetGo makes a sink leave that is stopped.
func (m member) LetGo() {
	m.l.use(func(b *fifo.Backlog) {
		if m.l.state.halted {
			b.StartSpill()
			m.l.burdens()
		}
	})
}

// Overcommit lets the queue exceed its limit.
func (m member) Overcommit(stuck bool) { m.l.use(func(b *fifo.Backlog) { b.Overcommit(stuck) }) }

// delivered notes that the sink holds the batch.
func (m member) delivered(batch []*change.Record) (tracked []*change.Record, counts bool) {
	m.l.use(func(b *fifo.Backlog) { tracked, counts = b.Ack(batch) })
	return tracked, counts
}

// NoteSaved notes the mark that is saved; the caller holds owing.saving.
func (l *Listener) NoteSaved(mark sink.Mark) { l.saved.Store(&mark) }
