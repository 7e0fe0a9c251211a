package pipeline

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/delivery"
)

// steered is a rig whose snapshots can be steered. Its sources never read any.
type steered struct {
	*rig
	orders    chan Order
	withdrawn []string
	resyncs   []change.Owed // of pods, that are due
}

func newSteered(t *testing.T) (*steered, chan Request) {
	r, requests := requestRig(t)
	s := &steered{rig: r, orders: make(chan Order)}
	r.config.Orders = s.orders
	for i := range r.config.Sources {
		source := &r.config.Sources[i]
		name := source.Stream.String()
		source.Withdraw = func(owed ...change.Owed) {
			for _, o := range owed {
				r.note(&s.withdrawn, fmt.Sprintf("%s %s %s", name, o.Reason, o.Sink))
			}
		}
		source.Due = func() []change.Owed {
			if name == "pods" {
				return s.resyncs
			}
			return nil
		}
	}
	return s, requests
}

func (s *steered) order(do checkpoint.Steering, ids ...string) error {
	answer := make(chan error, 1)
	select {
	case s.orders <- Order{Do: do, IDs: ids, Answer: answer}:
	case <-s.t.Context().Done():
		s.t.Fatal("nobody takes orders")
	}
	return <-answer
}

// owed are the snapshots that are owed, in words.
func (s *steered) owed() string {
	s.t.Helper()
	all, err := s.store.PendingSnapshots()
	if err != nil {
		s.t.Fatal(err)
	}
	var texts []string
	for _, d := range all {
		texts = append(texts, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", d.Stream, d.Reason, d.Sink, map[bool]string{true: "paused"}[d.Paused])))
	}
	return strings.Join(texts, ", ")
}

func owedID(stream string, reason change.Reason, sinkName string) string {
	d := delivery.PendingSnapshot(sinkName, stream, reason)
	return d.ID()
}

// live runs a life in which nothing was asked before.
func (s *steered) live(use func(line *Inlet)) {
	s.t.Helper()
	s.requests, s.withdrawn = nil, nil
	if err := s.life(use); err != nil {
		s.t.Fatal(err)
	}
}

// TestI4WhatIsStoppedOrPausedIsNotReadInTheNextLifeEither, and what is resumed is.
func TestI4WhatIsStoppedOrPausedIsNotReadInTheNextLifeEither(t *testing.T) {
	s, requests := newSteered(t)
	one, other := owedID("pods", change.Requested, "all"), owedID("services", change.Requested, "narrow")
	s.live(func(line *Inlet) {
		s.push(line, update(pods(), "a", 1), update(services(), "b", 2))
		s.drain(line, pods(), services())
		if err := errors.Join(ask(t, requests, ""), s.order(checkpoint.Pause, one), s.order(checkpoint.Stop, strings.ToUpper(other))); err != nil {
			t.Error(err)
		}
	})
	if got := strings.Join(s.withdrawn, ", "); got != "pods requested all, services requested narrow" {
		t.Errorf("withdrawn are %q", got)
	}
	s.live(func(*Inlet) {
		if got := s.owed(); got != "pods requested all paused, services requested all" {
			t.Errorf("owed are %q", got)
		}
		if got := s.requested(); got != "services requested all" {
			t.Errorf("the next life asks for %q", got)
		}
		if err := s.order(checkpoint.Resume, one); err != nil {
			t.Error(err)
		}
	})
	if got := s.requested(); got != "pods requested all, services requested all" {
		t.Errorf("resumed, it asks for %q", got)
	}
}

// TestOrdersThatCannotBeFollowedSayWhatCould, and nothing of them is done.
func TestOrdersThatCannotBeFollowedSayWhatCould(t *testing.T) {
	s, requests := newSteered(t)
	mine := owedID("pods", change.Requested, "all")
	owe := func(reason change.Reason) string {
		d := delivery.PendingSnapshot("all", "pods", reason)
		if err := s.store.Commit(checkpoint.Batch{PendingSnapshots: []checkpoint.PendingSnapshot{d}}); err != nil {
			t.Error(err)
		}
		return d.ID()
	}
	s.live(func(line *Inlet) {
		if err := s.order(checkpoint.Stop, "abc"); err == nil || err.Error() != `no snapshot "abc"; none is owed` {
			t.Errorf("error %v", err)
		}
		s.push(line, update(pods(), "a", 1))
		s.drain(line, pods())
		if err := ask(t, requests, "", "pods"); err != nil {
			t.Error(err)
		}
		lost, fresh := owe(change.Lost), owe(change.NewSink)
		for _, c := range []struct {
			do   checkpoint.Steering
			id   string
			want string
		}{
			{checkpoint.Stop, "abc", `no snapshot "abc"; there are: ` + lost + " (lost of pods for all), " + fresh + " (newsink of pods for all), " + mine + " (requested of pods for all)"},
			{checkpoint.Resume, mine, "snapshot " + mine + " of pods for sink all: it is not paused"},
			{checkpoint.Stop, lost, "snapshot " + lost + " of pods for sink all: it is of reason lost, and tells its sink of a gap: it can be neither stopped nor paused"},
			{checkpoint.Stop, fresh, "snapshot " + fresh + " of pods for sink all: it is of reason newsink, and without it the sink would lack objects: only requested ones and resyncs can be stopped; pause it"},
		} {
			var refused *OrderError
			if err := s.order(c.do, mine, c.id); !errors.As(err, &refused) || c.do == checkpoint.Stop && err.Error() != c.want {
				t.Errorf("error is %v, want %s", err, c.want)
			}
			if err := s.order(c.do, c.id); err == nil || err.Error() != c.want {
				t.Errorf("error is %v, want %s", err, c.want)
			}
		}
		if err := s.order(checkpoint.Pause, fresh); err != nil {
			t.Error(err)
		}
		if got := s.owed(); got != "pods lost all, pods newsink all paused, pods requested all" {
			t.Errorf("owed are %q", got)
		}
	})
}

// TestAResyncCanBeStoppedAndPaused though it is not saved.
func TestAResyncCanBeStoppedAndPaused(t *testing.T) {
	s, _ := newSteered(t)
	s.resyncs = []change.Owed{{Sink: "all", Reason: change.Resync}}
	id := owedID("pods", change.Resync, "all")
	s.live(func(line *Inlet) {
		s.push(line, update(pods(), "a", 1))
		s.drain(line, pods())
		if err := s.order(checkpoint.Stop, id); err != nil || s.owed() != "" {
			t.Errorf("%v: owed are %q", err, s.owed())
		}
		if err := s.order(checkpoint.Pause, id); err != nil || s.owed() != "pods resync all paused" {
			t.Errorf("%v: owed are %q", err, s.owed())
		}
	})
	if got := strings.Join(s.withdrawn, ", "); got != "pods resync all, pods resync all" {
		t.Errorf("withdrawn are %q", got)
	}
	s.resyncs = nil
	s.live(func(*Inlet) {
		if got := s.requested(); got != "" {
			t.Errorf("the next life asks for %q", got)
		}
		if err := s.order(checkpoint.Resume, id); err != nil || s.owed() != "pods resync all" {
			t.Errorf("%v: owed are %q", err, s.owed())
		}
	})
}

// TestWhatSharesAListWithWhatIsStoppedGoesOnWhereItsSinkIs, and nothing else is asked for again.
func TestWhatSharesAListWithWhatIsStoppedGoesOnWhereItsSinkIs(t *testing.T) {
	s, requests := newSteered(t)
	stream := services()
	var asked []change.Owed
	source := &s.config.Sources[1]
	source.Request = func(owed ...change.Owed) { asked = append(asked, owed...) }
	source.Due = func() []change.Owed { return asked }
	s.live(func(line *Inlet) {
		s.push(line, update(stream, "b", 2))
		s.drain(line, stream)
		if err := ask(t, requests, "", "services"); err != nil {
			t.Error(err)
		}
		snapshot := &change.Snapshot{Reason: change.Requested, Ordered: true}
		s.push(line, &change.Record{Stream: &stream, Op: change.Sync, Key: change.Key{Namespace: "n", Name: "b"}, UID: "uid-b", ResourceVersion: "2", Sink: "narrow", Snapshot: snapshot, Object: []byte("{}")})
		s.drain(line, stream)
		if err := s.order(checkpoint.Stop, owedID("services", change.Requested, "all")); err != nil {
			t.Error(err)
		}
	})
	if want := (change.Owed{Sink: "narrow", Reason: change.Requested, After: "n/b"}); len(asked) != 3 || asked[2] != want {
		t.Errorf("asked for %+v, want at last %+v", asked, want)
	}
}
