package pipeline

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/delivery"
)

// A sink that is stopped and would hold up others leaves the line: durably, it is absent from all its streams
// (checkpoint.Absence), and nobody waits for it any more. So is one that is not configured. One that does not take a
// stream any more is absent from that stream alone. Open again, it is asked
// about each stream at a moment of the stream's own, when everything before is saved: the gap of its full snapshot is
// what it is given first, and from there on it misses nothing.

// leaveLine makes a stopped sink absent: first in the state, then in the line. The committer calls it between two
// commits, so that no record and no mark of the sink is on its way to the state.
func (o *owing) leaveLine(l *listener) error {
	o.saving.Lock()
	defer o.saving.Unlock()
	o.oweMu.Lock()
	defer o.oweMu.Unlock()
	batch, err := o.absenceOf(l)
	if err == nil {
		err = o.Store.Commit(batch)
	}
	if err != nil {
		return fmt.Errorf("note that sink %s leaves: %w", l.Name, err)
	}
	var streams []string
	for _, s := range o.sources() {
		if l.Takes(&s.Stream) {
			streams = append(streams, s.Stream.String())
		}
	}
	o.leavesBeside(l)
	l.Seat.Leave(l.SavedMark(), streams)
	for _, rec := range l.Dismiss() {
		rec.Replay.Done("", fmt.Errorf("sink %s is stopped: %w", l.Name, delivery.ErrLeft))
	}
	o.Observer.Absent(l.Name)
	return nil
}

// absenceOf is what the state is to know: every snapshot that the sink was owed begins anew, since the present ones
// go past it.
func (o *owing) absenceOf(l *listener) (checkpoint.Batch, error) {
	var batch checkpoint.Batch
	pendingSnapshots, err := o.Store.PendingSnapshots()
	if err != nil {
		return batch, err
	}
	for _, d := range pendingSnapshots {
		if d.Sink == l.Name && d.Reason != change.Absent {
			batch.PendingSnapshots = append(batch.PendingSnapshots, d)
		}
	}
	for _, s := range o.sources() {
		if l.Takes(&s.Stream) {
			delivery.MakeAbsent(&batch, checkpoint.Subscription{Sink: l.Name, Stream: s.Stream.String()})
		}
	}
	return batch, nil
}

// depart notes in the batch who is absent when the run begins: sinks that are not configured any more, and those that
// were let go or not configured, until they are asked about each stream. It returns the names of the former.
func (o *owing) depart(batch *checkpoint.Batch, subscriptions map[checkpoint.Subscription]bool) (kept []string, err error) {
	absences, err := o.Store.Absences()
	if err != nil {
		return nil, err
	}
	marks, err := o.Store.Marks()
	if err != nil {
		return nil, err
	}
	absent := map[checkpoint.Subscription]bool{}
	others := o.settleParts(absences, batch)
	for _, a := range batch.Absent {
		absent[a.Subscription] = true
	}
	for _, a := range others {
		absent[a.Subscription] = true
		if a.Returning { // it is to return again, and misses everything until then, also where it is not configured now
			batch.Absent = append(batch.Absent, a)
		}
	}
	for _, l := range o.listeners {
		o.departs(l, batch, absent)
	}
	for _, subscription := range slices.Concat(slices.Collect(maps.Keys(subscriptions)), batch.Taken) {
		if mark, found := marks[subscription.Sink]; found && mark != "" && o.listenerOf(subscription.Sink) == nil {
			kept = append(kept, subscription.Sink)
			if !absent[subscription] {
				delivery.MakeAbsent(batch, subscription)
			}
		}
	}
	return kept, nil
}

// settleParts decides about those who had a stream only in part until it was made whole, and returns the other
// absences: who takes it is a new sink of it, and who does not misses it.
func (o *owing) settleParts(absences []checkpoint.Absence, batch *checkpoint.Batch) (others []checkpoint.Absence) {
	for _, a := range absences {
		switch {
		case !a.InPart():
			others = append(others, a)
		case slices.Contains(batch.Taken, a.Subscription):
			batch.Left = append(batch.Left, a.Subscription)
		default:
			batch.Taken = append(batch.Taken, a.Subscription)
			delivery.MakeAbsent(batch, a.Subscription)
		}
	}
	return others
}

// departs makes the line know what the listener's sink misses when the run begins. One that misses everything that it
// had is not in line, and misses the streams that came meanwhile, too.
func (o *owing) departs(l *listener, batch *checkpoint.Batch, absent map[checkpoint.Subscription]bool) {
	var missed, others []checkpoint.Subscription
	for _, s := range o.Sources {
		subscription := checkpoint.Subscription{Sink: l.Name, Stream: s.Stream.String()}
		switch {
		case !l.Takes(&s.Stream):
		case absent[subscription]:
			missed = append(missed, subscription)
		default:
			others = append(others, subscription)
		}
	}
	hadNone := !slices.ContainsFunc(others, func(s checkpoint.Subscription) bool { return !slices.Contains(batch.Taken, s) })
	if len(missed) > 0 {
		l.BeginAbsent(hadNone)
	}
	if len(missed) > 0 && hadNone {
		for _, subscription := range others {
			delivery.MakeAbsent(batch, subscription)
		}
		missed = append(missed, others...)
		o.leavesBeside(l)
	}
	for _, subscription := range missed {
		l.Seat.Miss(subscription.Stream)
	}
}

// tellAbsent tells the observer who is absent when the run begins.
func (o *owing) tellAbsent() {
	for _, l := range o.listeners {
		if l.IsAway() {
			o.Observer.Absent(l.Name)
		}
	}
}
