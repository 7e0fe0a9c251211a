package pipeline

import (
	"context"
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/line"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// member is the listener as the line sees it. The line's lock is held in every call but those for room.
type member struct{ l *listener }

func (l *listener) member() line.Member {
	m := member{l}
	return line.Member{
		Name: l.Name, Wants: l.Wants, Room: l.Sink.Queue, Coalesce: l.Coalesce, Recovery: &l.recovery,
		Queue: m, Disk: m, Patience: m, Delivered: m.delivered,
	}
}

// Reserve waits for room in the queue.
func (m member) Reserve(ctx context.Context, rec *change.Record) error { return m.l.reserve(ctx, rec) }

// Cancel gives room back.
func (m member) Cancel(size int) { m.l.cancel(size) }

// Enter queues the record, if it is wanted. Whoever the end of a reconcile is for, the reconcile has told of all
// sink-only objects.
func (m member) Enter(rec *change.Record, wanted bool) (superfluous []*change.Record, wake bool) {
	if wanted || rec.Op == change.SnapshotEnd {
		m.l.recovery.Enters(rec, m.l.clusterUID)
	}
	if wanted {
		superfluous, wake = m.l.push(rec)
	}
	if len(superfluous) > 0 {
		for _, rec := range superfluous {
			m.l.recovery.With(func(r *line.Recovery) { r.Log.Leaves(rec) })
		}
		m.l.observer.Coalesced(m.l.Name, len(superfluous))
		wake = true
	}
	return superfluous, m.l.overdue(rec.Received) || wake
}

// State says where the records are.
func (m member) State() line.DiskState {
	m.l.mu.Lock()
	defer m.l.mu.Unlock()
	return line.DiskState{Takes: m.l.spool.takes(), Behind: m.l.spool.behind(), Taken: m.l.onDisk()}
}

// Spill takes the record out for disk. A replay goes back where it came from.
func (m member) Spill(rec *change.Record) (part fifo.Part, order uint64, ok bool) {
	if rec.Replay != nil {
		m.l.giveBack(rec)
		return 0, 0, false
	}
	part, order = m.l.spill(rec)
	return part, order, true
}

// Number gives chunks their numbers, and ends the spooling of a queue that coalesces when what triggered it is on disk.
func (m member) Number(chunks [2]uint64) (first [2]uint64) {
	first = m.l.number(chunks)
	if m.l.Coalesce {
		m.l.endSpill()
	}
	return first
}

// SpillNow begins to spool, where the listener can.
func (m member) SpillNow() bool { return m.l.spoolsNow() }

// LetGo makes a sink leave that is stopped.
func (m member) LetGo() { m.l.letGo() }

// Overcommit lets the queue exceed its limit.
func (m member) Overcommit(stuck bool) { m.l.grantOvercommit(stuck) }

// delivered notes that the sink holds the batch.
func (m member) delivered(batch []*change.Record) (tracked []*change.Record, counts bool) {
	l := m.l
	l.mu.Lock()
	defer l.mu.Unlock()
	spooled := func(rec *change.Record) bool { // it is not the tracker's any more
		_, ahead := l.spool.ahead[rec.Seq]
		return ahead || rec.Seq == 0
	}
	tracked = batch
	if slices.ContainsFunc(batch, spooled) {
		tracked = slices.DeleteFunc(slices.Clone(batch), spooled)
	}
	onDisk := l.onDisk()
	l.taken = l.taken[queued(batch):]
	if len(l.taken) == 0 {
		l.spool.delivered()
	}
	l.observe()
	return tracked, len(l.taken) == 0 || !onDisk
}

// onDisk says whether some of what is taken is on disk; the caller holds mu.
func (l *listener) onDisk() bool { return l.spool.flight != nil || len(l.spool.ahead) > 0 }

// noteSaved notes the mark that is saved; the caller holds run.saving.
func (l *listener) noteSaved(mark sink.Mark) { l.saved.Store(&mark) }

// savedMark is where a crash would find the sink.
func (l *listener) savedMark() sink.Mark {
	if saved := l.saved.Load(); saved != nil {
		return *saved
	}
	return ""
}
