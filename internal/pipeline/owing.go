package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/listener"
)

// oweAll asks for the owed snapshots, whenever they may have changed, until ctx ends.
func (r *run) oweAll(ctx context.Context) error {
	for {
		if err := r.askOwed(); err != nil {
			return err
		}
		select {
		case <-r.owing.wake:
		case <-ctx.Done():
			return nil
		}
	}
}

// askOwed asks for the owed snapshots that were not asked for since their sink was opened.
func (r *run) askOwed() error {
	r.owing.mu.Lock()
	defer r.owing.mu.Unlock()
	pending, err := r.Store.PendingSnapshots()
	if err != nil {
		return fmt.Errorf("read the snapshots that are owed: %w", err)
	}
	before := r.owing.asked
	r.owing.asked = map[string]asked{} // without those that are not owed any more
	type list struct {
		stream string
		reason change.Reason
		limits change.Limits
	}
	sinks := map[list][]*listener.Intake{}
	for _, d := range pending {
		s, l := r.sourceOf(d.Stream), r.listenerOf(d.Sink)
		if s == nil || l == nil || d.Paused {
			continue
		}
		seat, _ := l.Seat()
		if last, is := before[d.ID()]; is && last.generation == d.Generation && last.seat == *seat {
			r.owing.asked[d.ID()] = last
			continue
		}
		r.owing.asked[d.ID()] = asked{d.Generation, l.NewestComparison(), *seat}
		of := list{d.Stream, d.Reason, d.Limits}
		sinks[of] = append(sinks[of], &l.Intake)
	}
	for of, those := range sinks {
		if s := r.sourceOf(of.stream); s != nil {
			s.Ask(those, of.reason, of.limits)
		}
	}
	return nil
}

func (r *run) sourceOf(stream string) *Source {
	for _, s := range r.all() {
		if s.Stream.String() == stream {
			return &s
		}
	}
	return nil
}

func (r *run) listenerOf(sinkName string) *listener.Listener {
	for _, l := range r.listeners {
		if l.Name == sinkName {
			return l
		}
	}
	return nil
}

// pay forgets the owed snapshots that have ended with the comparison.
func (r *run) pay(c *listener.Completed) {
	r.owing.mu.Lock()
	defer r.owing.mu.Unlock()
	pending, err := r.Store.PendingSnapshots()
	if err != nil {
		r.Observer.CommitFailed(err)
		return
	}
	for _, d := range pending {
		s := r.sourceOf(d.Stream)
		asked, is := r.owing.asked[d.ID()]
		if d.Sink != c.Sink || s == nil || !is || asked.generation != d.Generation || c.End.Comparison.Number() <= asked.after || !covers(&c.End, &s.Stream, d.Limits) {
			continue
		}
		if err := r.Store.Pay(d); err != nil {
			r.Observer.CommitFailed(err)
			return
		}
		delete(r.owing.asked, d.ID())
	}
}

// covers says whether the comparison was of everything in the stream within the limits.
func covers(end *checkpoint.Item, stream *change.Stream, limits change.Limits) bool {
	switch {
	case end.Resource != stream.Resource.String():
		return false
	case strings.HasSuffix(end.Comparison.ID, checkpoint.PartSuffix):
		return limits == change.Limits{Namespace: end.Key.Namespace, Name: end.Key.Name, Selector: *end.Selection}
	case limits.Name != "" || limits.Selector != "":
		return false // it has a list of its own
	}
	scope := checkpoint.ScopeOf(stream)
	if limits.Namespace != "" {
		scope = checkpoint.Scope(limits.Namespace)
	}
	return end.Scope == scope || end.Scope == checkpoint.Others
}

// request notes durably that the snapshots are owed. The same request twice leads to two snapshots, unless the first
// had not begun.
func (r *run) request(request *Request) error {
	var all []checkpoint.PendingSnapshot
	for _, part := range request.Parts {
		some, err := r.partOf(request.Sink, part)
		if err != nil {
			return err
		}
		all = append(all, some...)
	}
	r.owing.mu.Lock()
	defer r.owing.mu.Unlock()
	if err := r.Store.Commit(checkpoint.Batch{PendingSnapshots: all, Heard: request.Heard}); err != nil {
		return fmt.Errorf("note %d snapshots that are owed: %w", len(all), err)
	}
	r.owing.wake.Ring()
	return nil
}

// partOf are the owed snapshots of one part of a request.
func (r *run) partOf(sinkName string, part Part) (all []checkpoint.PendingSnapshot, err error) {
	if sinkName != "" && r.listenerOf(sinkName) == nil {
		return nil, fmt.Errorf("ask for a snapshot for sink %q: there is no such sink: choose of %s", sinkName, strings.Join(r.sinkNames(), ", "))
	}
	var names, taken []string
	for _, s := range r.all() {
		names = append(names, s.Stream.String())
		for _, l := range r.listeners {
			if sinkName != "" && l.Name != sinkName || !l.Takes(&s.Stream) {
				continue
			}
			taken = append(taken, s.Stream.String())
			if (len(part.Streams) == 0 || slices.Contains(part.Streams, s.Stream.String())) && part.Limits.Reach(&s.Stream) {
				all = append(all, checkpoint.PendingSnapshot{
					Stream: s.Stream.String(), Owed: change.Owed{Sink: l.Name, Reason: change.Requested, Limits: part.Limits},
				})
			}
		}
	}
	for _, name := range part.Streams {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("ask for a snapshot of %q: there is no such stream: choose of %s", name, strings.Join(names, ", "))
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("ask for a snapshot of %s: no sink that is asked for takes it: choose others of %s",
			strings.Join(part.Streams, ", "), strings.Join(slices.Compact(taken), ", "))
	}
	return all, nil
}

func (r *run) sinkNames() (names []string) {
	for _, l := range r.listeners {
		names = append(names, l.Name)
	}
	return names
}

// steer stops, pauses or resumes the snapshots. It saves that first, so that a restart after a crash does the same.
func (r *run) steer(do checkpoint.Steering, ids []string, heard map[string][]byte) error {
	r.owing.mu.Lock()
	defer r.owing.mu.Unlock()
	all, err := r.Store.PendingSnapshots()
	if err != nil {
		return fmt.Errorf("read the snapshots that are owed: %w", err)
	}
	var chosen []checkpoint.PendingSnapshot
	for _, id := range ids {
		at := slices.IndexFunc(all, func(d checkpoint.PendingSnapshot) bool { return d.ID() == strings.ToLower(id) })
		switch {
		case at < 0:
			return &RefusedError{fmt.Sprintf("no snapshot %q; %s", id, thereAre(all))}
		case do == checkpoint.Resume && !all[at].Paused:
			return &RefusedError{fmt.Sprintf("snapshot %s of %s for sink %s: it is not paused", id, all[at].Stream, all[at].Sink)}
		}
		chosen = append(chosen, all[at])
	}
	if err := r.Store.Commit(checkpoint.Batch{Steered: chosen, Steering: do, Heard: heard}); err != nil {
		return fmt.Errorf("save what becomes of %d snapshots: %w", len(chosen), err)
	}
	for _, d := range chosen {
		delete(r.owing.asked, d.ID())
		if s, l := r.sourceOf(d.Stream), r.listenerOf(d.Sink); do != checkpoint.Resume && s != nil && l != nil {
			s.Withdraw(&l.Intake, d.Limits)
		}
	}
	r.owing.wake.Ring()
	return nil
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

// resync asks for the periodic resyncs of a sink until ctx ends, like shouldResync of client-go's processorListener.
// The streams begin spread over the second half of the first period, so that they are not all listed at once.
func (r *run) resync(ctx context.Context, l *listener.Listener) {
	next := map[string]time.Time{}
	for {
		now, wait := time.Now(), l.Resync
		for _, s := range r.all() {
			name := s.Stream.String()
			if !l.Takes(&s.Stream) {
				continue
			}
			at, known := next[name]
			switch {
			case !known:
				at = now.Add(time.Duration((0.5 + rand.Float64()/2) * float64(l.Resync)))
			case !at.After(now):
				s.Ask([]*listener.Intake{&l.Intake}, change.Resync, change.Limits{})
				at = now.Add(l.Resync)
			}
			next[name] = at
			wait = min(wait, at.Sub(now))
		}
		timer := time.NewTimer(max(wait, time.Millisecond))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// replay queues one dead letter. If it returns nil, the listener tells what becomes of it.
func (r *run) replay(ctx context.Context, rec *change.Record) error {
	if !rec.Op.OfObject() {
		return errors.New("it frames a snapshot that is over, and is of no use again: delete the letter, and ask for another with exporter snapshot")
	}
	s, l := r.sourceOf(rec.Stream.String()), r.listenerOf(rec.Sink)
	if s == nil || l == nil || l.DeadLetters == nil || !l.Takes(rec.Stream) {
		return fmt.Errorf("sink %s does not take %s any more: configure it again, or delete the letter", rec.Sink, rec.Stream)
	}
	if !l.IsOffered(rec.Stream) {
		return fmt.Errorf("sink %s is stopped, or comes back just now: try again when it is open", rec.Sink)
	}
	rec.Remarks = nil
	return l.Push(ctx, rec)
}
