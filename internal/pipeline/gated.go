package pipeline

import (
	"context"
	"fmt"
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// A sink whose format cannot encode the records of a stream yet, since a registry has no schema of them, holds that
// stream up: the watch waits, and nothing is lost. When others have waited for long, it misses the stream: durably, it
// is absent from that stream alone, and the others go on. It is given a gap and a full snapshot of the stream when its
// format is ready. Where no other sink takes the stream, nobody gains by that, and the stream waits.

// openGates asks for the snapshots that have waited for the format of the listener's sink, until ctx ends.
func (o *owing) openGates(ctx context.Context, l *listener) error {
	for {
		changed := l.Gate.Changed()
		if err := o.requestAdmitted(l); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// requestAdmitted asks for the snapshots that need not wait any more.
func (o *owing) requestAdmitted(l *listener) error {
	o.oweMu.Lock()
	defer o.oweMu.Unlock()
	var due []checkpoint.PendingSnapshot
	for _, d := range o.shut.of(l.Name) {
		if stream := o.streamNamed(d.Stream); stream != nil && l.Admits(stream) && o.shut.take(d) {
			due = append(due, d)
		}
	}
	if len(due) == 0 {
		return nil
	}
	return o.requestOwed(func(d checkpoint.PendingSnapshot) bool { return slices.ContainsFunc(due, isSame(d)) })
}

// streamNamed is the stream of the name, nil where there is none now.
func (o *owing) streamNamed(name string) *change.Stream {
	for _, s := range o.sources() {
		if s.Stream.String() == name {
			return &s.Stream
		}
	}
	return nil
}

// missStream makes the sink absent from a stream that has waited for its format, where others gain by that, and all
// that was pushed of the stream is saved. A sink that was about to return misses it again. The committer calls it
// between two commits.
func (o *owing) missStream(l *listener, stream change.Stream) error {
	o.saving.Lock()
	defer o.saving.Unlock()
	o.oweMu.Lock()
	defer o.oweMu.Unlock()
	name := stream.String()
	if l.Admits(&stream) || o.line.Behind(stream) > 0 || !o.line.IsWanted(&stream) {
		return nil
	}
	owed, err := o.Store.PendingSnapshots()
	if err != nil {
		return fmt.Errorf("read the snapshots that are owed: %w", err)
	}
	batch := checkpoint.Batch{PendingSnapshots: slices.DeleteFunc(owed, func(d checkpoint.PendingSnapshot) bool {
		return d.Sink != l.Name || d.Stream != name || d.Reason == change.Absent
	})}
	if err := l.MissStream(&stream, &batch); err != nil {
		return fmt.Errorf("note that sink %s misses stream %s: %w", l.Name, name, err)
	}
	o.Observer.Missed(l.Name, stream)
	return o.requestOwed(func(d checkpoint.PendingSnapshot) bool { return d.Sink == l.Name && d.Stream == name })
}
