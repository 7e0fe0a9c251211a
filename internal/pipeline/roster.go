package pipeline

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/line"
)

// Roster is how streams come while a pipeline runs; they go by themselves, with ErrOver.
type Roster struct {
	run   *run
	start func(Source) // runs the source beside the others

	mu   sync.Mutex // guards the following
	held map[string]bool
}

func newRoster(r *run, start func(Source)) *Roster {
	roster := &Roster{run: r, start: start, held: map[string]bool{}}
	for _, s := range r.Sources {
		roster.held[s.Stream.String()] = true
	}
	return roster
}

// Holds says whether there is a stream of the name, or one that is just being forgotten.
func (r *Roster) Holds(stream string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held[stream]
}

// Join adds a stream and starts it, as if it had been there from the start: its sinks and their subscriptions are saved
// before its first record. An error leaves everything as it was.
func (r *Roster) Join(s Source) error {
	name := s.Stream.String()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held[name] {
		return fmt.Errorf("add stream %s: it is there already", name)
	}
	if err := r.run.enrol(s); err != nil {
		return fmt.Errorf("add stream %s: %w", name, err)
	}
	r.held[name] = true
	r.start(s)
	return nil
}

// Unsaved is, by stream, when the oldest record was received that is not part of the saved state. The saved position is
// before it, so whoever reads the stream anew needs the API server's history from there on. A stream that waits for
// nothing is not in it.
func (r *Roster) Unsaved() map[string]time.Time { return r.run.line.Unsaved() }

// leave forgets a stream that is over. It tries until ctx ends; what is left then is over again in the next life.
func (r *Roster) leave(ctx context.Context, s Source) {
	forget := func() error { return r.run.forget(s) }
	if backoff.Retry(forget, backoff.WithContext(delivery.RetryForever(), ctx)) != nil {
		return
	}
	r.mu.Lock()
	delete(r.held, s.Stream.String())
	r.mu.Unlock()
	r.run.Observer.Left(s.Stream)
}

// enrol makes the stream one of the run's.
func (r *run) enrol(s Source) error {
	r.oweMu.Lock()
	defer r.oweMu.Unlock()
	subscriptions, err := r.Store.Subscriptions()
	if err != nil {
		return err
	}
	known, err := r.Store.Streams()
	if err != nil {
		return err
	}
	absences, err := r.Store.Absences()
	if err != nil {
		return err
	}
	batch := checkpoint.Batch{Resources: []change.Stream{s.Stream}}
	for _, l := range r.listeners {
		subscriptionOf(l, s, subscriptions, &batch)
	}
	if !slices.Contains(known, s.Stream.String()) {
		batch.PendingSnapshots = nil // everybody is given the first snapshot
	}
	for _, l := range r.listeners {
		leavesUntaken(l, []Source{s}, subscriptions, &batch)
	}
	absences = r.settleParts(slices.DeleteFunc(absences, func(a checkpoint.Absence) bool { return a.Stream != s.Stream.String() }), &batch)
	var away []*listener
	for _, l := range r.listeners {
		subscription := checkpoint.Subscription{Sink: l.Name, Stream: s.Stream.String()}
		misses := func(a checkpoint.Absence) bool { return a.Subscription == subscription }
		if l.Takes(&s.Stream) && (l.IsAway() || slices.ContainsFunc(absences, misses)) {
			away = append(away, l)
			delivery.MakeAbsent(&batch, subscription)
		}
	}
	if err := r.Store.Commit(batch); err != nil {
		return err
	}
	for _, l := range away {
		l.Seat.Miss(s.Stream.String())
	}
	for _, l := range r.listeners {
		if l.Takes(&s.Stream) {
			l.Recovery.With(func(r *line.Recovery) { r.Log.Join(s.Stream) })
		}
	}
	r.add(s)
	return r.requestOwed(func(d checkpoint.PendingSnapshot) bool { return d.Stream == s.Stream.String() })
}

// forget takes the stream out of the line and the saved state. Everything of it is saved: its source has waited for
// that.
func (r *run) forget(s Source) error {
	name := s.Stream.String()
	r.remove(name)
	batch := checkpoint.Batch{Over: []string{name}}
	for _, l := range r.listeners {
		if l.IsBehind() { // the end of the stream's last reconcile is on disk, and tells of what only the log knows
			batch.OnDisk = true
		} else {
			l.Recovery.With(func(r *line.Recovery) { r.Log.Leave(name) })
		}
		if l.Takes(&s.Stream) && l.Seat.Reaches(name) { // another is to be told of its end, should the stream come back
			batch.Left = append(batch.Left, checkpoint.Subscription{Sink: l.Name, Stream: name})
		}
	}
	if err := r.Store.Commit(batch); err != nil {
		return fmt.Errorf("forget stream %s: %w", name, err)
	}
	r.line.Forget(name)
	return nil
}

// Due are the full snapshots that the streams were asked for in this life and that are not read yet. Resyncs are among
// them, which are not saved.
func (r *Roster) Due() []checkpoint.PendingSnapshot { return r.run.due() }
