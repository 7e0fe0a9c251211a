package pipeline

import (
	"fmt"
	"slices"
	"sync"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// owing is what sinks are owed, and what they miss.
type owing struct {
	participants
	saving sync.Mutex // held while marks are saved, and no longer than one attempt takes
	oweMu  sync.Mutex // held while pending snapshots are noted and asked for
	shut   shut
}

// pendingSnapshots are full snapshots for the sink of the streams that it takes.
func (o *owing) pendingSnapshots(sinkName string, reason change.Reason, takes func(*change.Stream) bool) []checkpoint.PendingSnapshot {
	var pendingSnapshots []checkpoint.PendingSnapshot
	for _, s := range o.sources() {
		if takes(&s.Stream) {
			pendingSnapshots = append(pendingSnapshots, delivery.PendingSnapshot(sinkName, s.Stream.String(), reason))
		}
	}
	return pendingSnapshots
}

// owe notes the pending snapshots durably, with marks that belong to them, and asks the streams for their snapshots.
// Each generation of a pending snapshot is asked for once a life, so that the end of one snapshot never pays for
// another: hence the lock.
func (o *owing) owe(pendingSnapshots []checkpoint.PendingSnapshot, marks map[string]sink.Mark) error {
	return o.oweAll(&checkpoint.Batch{PendingSnapshots: pendingSnapshots, Marks: marks})
}

// oweAll is owe for pending snapshots in a batch with what belongs to them.
func (o *owing) oweAll(batch *checkpoint.Batch) error {
	o.oweMu.Lock()
	defer o.oweMu.Unlock()
	if err := o.Store.Commit(*batch); err != nil {
		return fmt.Errorf("note %d snapshots that are owed: %w", len(batch.PendingSnapshots), err)
	}
	return o.requestOwed(func(saved checkpoint.PendingSnapshot) bool {
		return slices.ContainsFunc(batch.PendingSnapshots, isSame(saved))
	})
}

// requestOwed asks the streams for the saved pending snapshots that are chosen, each stream for all of its own at once.
func (o *owing) requestOwed(chosen func(checkpoint.PendingSnapshot) bool) error {
	pendingSnapshots, err := o.Store.PendingSnapshots()
	if err != nil {
		return fmt.Errorf("read the snapshots that are owed: %w", err)
	}
	absences, err := o.Store.Absences()
	if err != nil {
		return fmt.Errorf("read which sinks were absent: %w", err)
	}
	since(pendingSnapshots, absences)
	for _, s := range o.sources() {
		var owed []change.Owed
		name := s.Stream.String()
		for _, d := range pendingSnapshots {
			if d.Stream == name && chosen(d) && o.asks(&d, &s.Stream) {
				owed = append(owed, d.Owed)
			}
		}
		if len(owed) > 0 {
			s.Request(owed...)
		}
	}
	return nil
}

// since puts into pending snapshots of reason absent from where on the sinks have missed something.
func since(pendingSnapshots []checkpoint.PendingSnapshot, absences []checkpoint.Absence) {
	for i := range pendingSnapshots {
		d := &pendingSnapshots[i]
		at := slices.IndexFunc(absences, func(a checkpoint.Absence) bool { return a.Sink == d.Sink && a.Stream == d.Stream })
		if d.Reason == change.Absent && at >= 0 {
			d.From, d.Since = absences[at].From.ResourceVersion, absences[at].Since.UnixMilli()
		}
	}
	// With the snapshot of this reason the sink is given the stream again, so that it comes first.
	slices.SortStableFunc(pendingSnapshots, func(a, b checkpoint.PendingSnapshot) int {
		switch {
		case a.Reason == b.Reason:
			return 0
		case a.Reason == change.Absent:
			return -1
		case b.Reason == change.Absent:
			return 1
		}
		return 0
	})
}

// asks says whether the pending snapshot's sink can be given the snapshot, and prepares for that.
func (o *owing) asks(d *checkpoint.PendingSnapshot, stream *change.Stream) bool {
	l := o.listenerOf(d.Sink)
	if d.Paused || l == nil || l.IsAway() || !l.Takes(stream) {
		return false
	}
	switch {
	case d.Reason == change.Absent && l.IsPartly():
		return false // what is on disk for it is not compared with what it has missed
	case d.Reason == change.Lost && !l.IsJoined():
		return false // its log is not read yet, so that nobody knows what it lost the deletes of
	case o.isShut(l, d, stream):
		return false
	}
	if d.Reason == change.Absent {
		l.Seat.Expect(d.Stream, d.Generation)
	}
	return true
}

// isShut says whether the snapshot has to wait for the format of its sink. Then openGates asks for it. It is noted
// before the format is looked at: whoever makes that ready finds it.
func (o *owing) isShut(l *listener, d *checkpoint.PendingSnapshot, stream *change.Stream) bool {
	if l.Gate == nil {
		return false
	}
	o.shut.add(*d)
	return !l.Admits(stream) || !o.shut.take(*d)
}

// lostSnapshots are what a sink is owed whose log has lost records: a full snapshot of every stream that it takes, and
// of those that are not configured, for when they are back. Any of them may have written there.
func (o *owing) lostSnapshots(l *listener) ([]checkpoint.PendingSnapshot, error) {
	subscriptions, err := o.Store.Subscriptions()
	if err != nil {
		return nil, err
	}
	pendingSnapshots, sources := o.pendingSnapshots(l.Name, change.Lost, l.Takes), o.sources()
	for subscription := range subscriptions {
		configured := func(s Source) bool { return s.Stream.String() == subscription.Stream }
		if subscription.Sink == l.Name && !slices.ContainsFunc(sources, configured) {
			pendingSnapshots = append(pendingSnapshots, delivery.PendingSnapshot(l.Name, subscription.Stream, change.Lost))
		}
	}
	return pendingSnapshots, nil
}

// oweLost makes sure that a sink whose log lost records while running gets a full snapshot of every stream: any of them
// may have written there. The mark is saved with the pending snapshots, and no later one that was on its way.
func (o *owing) oweLost(sinkName string, mark, plain sink.Mark) error {
	l := o.listenerOf(sinkName)
	o.saving.Lock()
	defer o.saving.Unlock()
	l.Seat.Rewind(mark, plain)
	pendingSnapshots, err := o.lostSnapshots(l)
	if err != nil {
		return err
	}
	if err := o.owe(pendingSnapshots, map[string]sink.Mark{l.Name: mark}); err != nil {
		return err
	}
	l.NoteSaved(mark)
	return nil
}

// owesLost says whether the sink's log once lost records, and the snapshot after that, of a stream that there is, is
// not complete.
func (o *owing) owesLost(name string) (bool, error) {
	pendingSnapshots, err := o.Store.PendingSnapshots()
	sources := o.sources()
	return slices.ContainsFunc(pendingSnapshots, func(d checkpoint.PendingSnapshot) bool {
		isOf := func(s Source) bool { return s.Stream.String() == d.Stream }
		return d.Sink == name && d.Reason == change.Lost && slices.ContainsFunc(sources, isOf)
	}), err
}
