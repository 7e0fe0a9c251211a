package pipeline

import (
	"fmt"
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/line"
)

// run is one life of the pipeline. It stands on three types, each of which knows only the one before it: who is there
// (participants), what sinks are owed (owing), and how they are opened (opener).
type run struct {
	opener
	resyncer *resyncer
}

func newRun(config *Config) *run {
	r := &run{opener: opener{owing: owing{participants: participants{Config: config, stops: delivery.NewStops(len(config.Sinks))}}}}
	common := delivery.Config{
		ClusterUID: config.ClusterUID, Streams: config.streams(), Store: config.Store, Reshape: config.Reshape, Observer: config.Observer.Observer,
		Stops: r.stops, OweLost: r.oweLost, Shape: r.shape, Prove: config.Prove,
	}
	for i, s := range config.Sinks {
		r.listeners = append(r.listeners, &listener{Listener: delivery.New(i, s, &common)})
	}
	var members []line.Member
	for _, l := range r.listeners {
		members = append(members, l.Member())
	}
	r.line = line.New(members, line.Options{ClusterUID: config.ClusterUID, Images: config.Images, MarkLag: config.MarkLag})
	for i, l := range r.listeners {
		l.Seat = r.line.Seat(i)
	}
	r.resyncer = newResyncer(&r.participants)
	r.resyncer.held = r.isHeld
	return r
}

// newStreamSet is that of the run; start runs a source beside the others.
func (r *run) newStreamSet(start func(Source)) *StreamSet {
	set := &StreamSet{
		subscribe: r.subscribe, forget: r.forget, start: start, left: r.Observer.Left, unsaved: r.line.Unsaved, due: r.due, held: map[string]bool{},
	}
	for _, s := range r.Sources {
		set.held[s.Stream.String()] = true
	}
	return set
}

// add makes the stream's source one of the run's, with times of its own for resyncs.
func (r *run) add(s Source) {
	r.sourceMu.Lock()
	defer r.sourceMu.Unlock()
	r.Sources = append(r.Sources, s)
	r.resyncer.join(s)
}

// remove forgets the stream's source.
func (r *run) remove(stream string) {
	r.sourceMu.Lock()
	defer r.sourceMu.Unlock()
	r.Sources = slices.DeleteFunc(r.Sources, func(other Source) bool { return other.Stream.String() == stream })
	r.resyncer.leave(stream)
}

// subscribe makes the stream one of the run's.
func (r *run) subscribe(s Source) error {
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
