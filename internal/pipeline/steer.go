package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/line"
)

// OrderError is an order that cannot be followed, and says why and what could be.
type OrderError struct{ Text string }

func (e *OrderError) Error() string { return e.Text }

// steer follows the order. What is saved comes first: a crash after it finds nothing to read, or what is to be read.
func (o *owing) steer(order *Order) error {
	o.oweMu.Lock()
	defer o.oweMu.Unlock()
	saved, err := o.Store.PendingSnapshots()
	if err != nil {
		return fmt.Errorf("read the snapshots that are owed: %w", err)
	}
	chosen, err := o.chosenBy(order, withResyncs(saved, o.due()))
	if err != nil {
		return err
	}
	if err := o.Store.Commit(checkpoint.Batch{Steered: chosen, Steering: order.Do, Heard: order.Heard}); err != nil {
		return fmt.Errorf("save what becomes of %d snapshots: %w", len(chosen), err)
	}
	if order.Do == checkpoint.Resume {
		return o.requestOwed(func(d checkpoint.PendingSnapshot) bool { return slices.ContainsFunc(chosen, isSame(d)) })
	}
	return o.withdraw(chosen)
}

// withResyncs are the snapshots that are owed and the resyncs that are due, which are not saved.
func withResyncs(saved, due []checkpoint.PendingSnapshot) []checkpoint.PendingSnapshot {
	all := slices.Clone(saved)
	for _, d := range due {
		if d.Reason == change.Resync && !slices.ContainsFunc(saved, isSame(d)) {
			all = append(all, d)
		}
	}
	return all
}

// chosenBy are those that the order names, each of which it can be followed for.
func (o *owing) chosenBy(order *Order, all []checkpoint.PendingSnapshot) (chosen []checkpoint.PendingSnapshot, err error) {
	for _, id := range order.IDs {
		var found []checkpoint.PendingSnapshot
		for i := range all {
			if all[i].ID() == strings.ToLower(id) {
				found = append(found, all[i])
			}
		}
		switch {
		case len(found) == 0:
			return nil, &OrderError{fmt.Sprintf("no snapshot %q; %s", id, thereAre(all))}
		case len(found) > 1:
			return nil, &OrderError{fmt.Sprintf("snapshot %s is two: wait until one of them is delivered", id)}
		}
		if why := o.refusal(order.Do, &found[0]); why != "" {
			return nil, &OrderError{fmt.Sprintf("snapshot %s of %s for sink %s: %s", id, found[0].Stream, found[0].Sink, why)}
		}
		chosen = append(chosen, found[0])
	}
	return chosen, nil
}

func thereAre(all []checkpoint.PendingSnapshot) string {
	if len(all) == 0 {
		return "none is owed"
	}
	var names []string
	for i := range all {
		names = append(names, fmt.Sprintf("%s (%s of %s for %s)", all[i].ID(), all[i].Reason, all[i].Stream, all[i].Sink))
	}
	return "there are: " + strings.Join(names, ", ")
}

// refusal says why the order cannot be followed for the snapshot, "" is that it can. What a sink lacks without it must
// not stay missing without a word.
func (o *owing) refusal(do checkpoint.Steering, d *checkpoint.PendingSnapshot) string {
	switch reason := d.Reason; {
	case do == checkpoint.Resume:
		if !d.Paused {
			return "it is not paused"
		}
	case reason.Gap():
		return fmt.Sprintf("it is of reason %s, and tells its sink of a gap: it can be neither stopped nor paused", reason)
	case do == checkpoint.Stop && reason != change.Requested && reason != change.Resync:
		return fmt.Sprintf("it is of reason %s, and without it the sink would lack objects: only requested ones and resyncs can be stopped; pause it", reason)
	case reason == change.Resync && o.isCorrection(d):
		return "it repeats corrections that a crash has left in one sink alone, and cannot be stopped or paused"
	}
	return ""
}

// isCorrection says whether the resync is one of resumeCorrections.
func (o *owing) isCorrection(d *checkpoint.PendingSnapshot) (corrected bool) {
	l := o.listenerOf(d.Sink)
	for _, s := range o.sources() {
		if l != nil && s.Stream.String() == d.Stream {
			l.Recovery.With(func(r *line.Recovery) { corrected = r.Log.Corrected(&s.Stream) })
		}
	}
	return corrected
}

// withdraw makes the streams read the snapshots no more. Those that share their lists go on where their sinks are.
func (o *owing) withdraw(gone []checkpoint.PendingSnapshot) error {
	var shared []checkpoint.PendingSnapshot
	for _, s := range o.sources() {
		var owed []change.Owed
		for _, d := range gone {
			if d.Stream == s.Stream.String() {
				owed = append(owed, d.Owed)
			}
		}
		if len(owed) == 0 || s.Withdraw == nil {
			continue
		}
		shared = append(shared, sharing(&s, owed)...)
		s.Withdraw(owed...)
	}
	return o.requestOwed(func(d checkpoint.PendingSnapshot) bool { return slices.ContainsFunc(shared, isSame(d)) })
}

// sharing are the source's snapshots that may share a list with those that are withdrawn.
func sharing(s *Source, withdrawn []change.Owed) (shared []checkpoint.PendingSnapshot) {
	if s.Due == nil {
		return nil
	}
	for _, owed := range s.Due() {
		ofReason := func(w change.Owed) bool { return w.Reason == owed.Reason && w.Limits == owed.Limits }
		if slices.ContainsFunc(withdrawn, ofReason) && !slices.ContainsFunc(withdrawn, owed.Same) {
			shared = append(shared, checkpoint.PendingSnapshot{Stream: s.Stream.String(), Owed: owed})
		}
	}
	return shared
}

// isHeld says whether the sink's resync of the stream is paused.
func (o *owing) isHeld(sinkName, stream string) bool {
	saved, err := o.Store.PendingSnapshots()
	return err == nil && slices.ContainsFunc(saved, func(d checkpoint.PendingSnapshot) bool {
		return d.Paused && d.Sink == sinkName && d.Stream == stream && d.Reason == change.Resync
	})
}
