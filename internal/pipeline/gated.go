package pipeline

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// A sink whose format cannot encode the records of a stream yet, since a registry has no schema of them, holds that
// stream up: the watch waits, and nothing is lost. When others have waited for long, it misses the stream: durably, it
// is absent from that stream alone, and the others go on. It is given a gap and a full snapshot of the stream when its
// format is ready. Where no other sink takes the stream, nobody gains by that, and the stream waits.

// shut are the snapshots that are not asked for yet, since their sinks' formats are not ready.
type shut struct {
	mu  sync.Mutex // guards the following
	all []checkpoint.PendingSnapshot
}

// add notes the snapshot, once.
func (s *shut) add(d checkpoint.PendingSnapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.all, isSame(d)) {
		s.all = append(s.all, d)
	}
}

// take removes the snapshot. It is false where somebody else has taken it, who asks for it then.
func (s *shut) take(d checkpoint.PendingSnapshot) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.all)
	s.all = slices.DeleteFunc(s.all, isSame(d))
	return len(s.all) < before
}

// of are those of the sink.
func (s *shut) of(sinkName string) (all []checkpoint.PendingSnapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.all {
		if d.Sink == sinkName {
			all = append(all, d)
		}
	}
	return all
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
