package pipeline

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// reject leaves one letter of pod huge at version 2.
func (p *post) reject(line *Inlet) {
	p.push(line, large("huge", 2))
	p.drain(line, pods())
}

func TestReplayDeliversOnceTheLimitIsRaised(t *testing.T) {
	p := newPost(t)
	p.live(func(line *Inlet) {
		p.reject(line)
		l := p.only()
		if err := p.replay(l, false); err == nil || !strings.HasPrefix(err.Error(), "rejected again: ") {
			t.Errorf("below the limit: %v", err)
		}
		p.expect("huge/2/gap", "huge/2/too_large")
		p.target.max(1 << 20)
		if err := p.replay(l, false); err != nil {
			t.Error(err)
		}
		p.expect("huge/2/gap huge/2/updated", "")
		if value := p.target.last(); !strings.Contains(value, `"replayed":"current"`) || !strings.Contains(value, string(l.Object)) {
			t.Errorf("sent %.500s", value)
		}
		if err := p.replay(l, false); err == nil || !strings.Contains(err.Error(), "no such dead letter") {
			t.Errorf("the second time: %v", err)
		}
		p.drain(line, pods())
	})
	if got := p.target.short(); got != "huge/2/gap huge/2/updated" {
		t.Errorf("log is %q", got)
	}
}

// I3: what is older does not land after what is newer, wherever the newer one is on its way.
func TestI3ASupersededLetterIsKeptUnlessForced(t *testing.T) {
	gone := update(pods(), "huge", 3)
	gone.Op = change.Deleted
	again := update(pods(), "huge", 3)
	again.UID = "other"
	for name, test := range map[string]struct {
		newer *change.Record
		want  string
	}{
		"a newer version":   {update(pods(), "huge", 3), "superseded: the object is at version 3"},
		"a delete":          {gone, "superseded: the object is gone"},
		"another of a name": {again, "superseded: the object was deleted and made again, and is at version 3"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPost(t)
			p.live(func(line *Inlet) {
				p.reject(line)
				p.target.max(1 << 20)
				p.push(line, test.newer)
				l := p.only()
				err := p.replay(l, false) // the newer one may be saved, or not yet
				var superseded *delivery.SupersededError
				if !errors.As(err, &superseded) || superseded.Error() != test.want {
					t.Errorf("got %v, want %s", err, test.want)
				}
				p.drain(line, pods())
				if err = p.replay(l, false); !errors.As(err, &superseded) {
					t.Errorf("when it is saved: got %v", err)
				}
				if err := p.replay(l, true); err != nil {
					t.Error(err)
				}
				if !strings.Contains(p.target.last(), `"replayed":"history"`) {
					t.Errorf("sent %.500s", p.target.last())
				}
			})
			p.expect("huge/2/gap huge/3/"+test.newer.Op.String()+" huge/2/updated", "")
		})
	}
}

// What another sink holds up is delivered to this one, and not saved.
func TestI3WhatIsNotSavedSupersedes(t *testing.T) {
	fault, entered, open := gate()
	p := newPost(t)
	p.config.Sinks = append(p.config.Sinks, sinkOf("stuck", &memory{fault: fault}))
	written := make(chan struct{}, 10)
	p.config.Observer.Written = func(name string, _ []*change.Record, _ time.Duration) {
		if name == "bus" {
			written <- struct{}{}
		}
	}
	p.live(func(line *Inlet) {
		p.push(line, large("huge", 2))
		<-entered
		<-written // the note
		p.push(line, update(pods(), "huge", 3))
		<-written
		p.target.max(1 << 20)
		err := p.replay(p.only(), false)
		var superseded *delivery.SupersededError
		if !errors.As(err, &superseded) {
			t.Errorf("got %v", err)
		}
		close(open)
		p.drain(line, pods())
	})
	p.expect("huge/2/gap huge/3/updated", "huge/2/too_large")
}

func TestLetterOfADeleteIsCurrentWhileThereIsNone(t *testing.T) {
	p := newPost(t)
	p.target.limit = 10 // it does not go without its last state either
	deleted := large("huge", 2)
	deleted.Op = change.Deleted
	p.live(func(line *Inlet) {
		p.push(line, deleted)
		p.drain(line, pods())
		p.target.max(1 << 20)
		if err := p.replay(p.only(), false); err != nil {
			t.Error(err)
		}
	})
	p.expect("huge/2/gap huge/2/deleted", "")
}

// A crash after the delivery and before the letter is removed: the sink's log says that it was delivered.
func TestACrashRepeatsNoReplay(t *testing.T) {
	for name, arm := range map[string]func(*narrow){
		"before it is written": func(n *narrow) { n.before = once("updated") },
		"when it is written":   func(n *narrow) { n.after = once("updated") },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPost(t)
			if err := p.life(func(line *Inlet) {
				p.reject(line)
				p.target.max(1 << 20)
				arm(p.target)
				if err := p.replay(p.only(), false); err == nil {
					t.Error("told of a delivery that nobody knows of")
				}
			}); !errors.Is(err, errCrash) {
				t.Fatalf("ended with %v", err)
			}
			p.live(func(line *Inlet) {
				if p.kept() != "" {
					if err := p.replay(p.only(), false); err != nil {
						t.Error(err)
					}
				}
			})
			p.expect("huge/2/gap huge/2/updated", "")
		})
	}
}

// The same, where the exporter lives on and opens the sink again.
func TestAFailureRepeatsNoReplay(t *testing.T) {
	p := newPost(t)
	p.live(func(line *Inlet) {
		p.reject(line)
		p.target.max(1 << 20)
		p.target.after = failing(once("updated"))
		if err := p.replay(p.only(), false); err != nil {
			t.Error(err)
		}
	})
	p.expect("huge/2/gap huge/2/updated", "")
}

func TestReplayOfWhatIsNotTakenAnyMore(t *testing.T) {
	p := newPost(t)
	p.live(func(line *Inlet) {
		p.reject(line)
		l := p.only()
		rec := l.Record(clusterUID)
		rec.Sink = "lake"
		answer := make(chan ReplayEnd, 1)
		p.replays <- Replay{Letter: l.ID, Record: rec, Answer: answer}
		const want = "sink lake does not take pods any more: configure it again, or delete the letter"
		if end := <-answer; end.Err == nil || end.Err.Error() != want {
			t.Errorf("got %v, want %s", end.Err, want)
		}
		l.Resource = "nodes"
		if err := p.replay(l, true); err == nil || !strings.Contains(err.Error(), "does not take nodes any more") {
			t.Errorf("got %v", err)
		}
		l.Op = "snapshot.end"
		if err := p.replay(l, true); err == nil || !strings.Contains(err.Error(), "it frames a snapshot that is over") {
			t.Errorf("got %v", err)
		}
	})
	p.expect("huge/2/gap", "huge/2/too_large")
}

// failing makes a crash an error that opening the sink again mends.
func failing(inner func(*sink.Message) error) func(*sink.Message) error {
	return func(m *sink.Message) error {
		if inner(m) != nil {
			return errors.New("connection lost")
		}
		return nil
	}
}

// The write of the letter's delete fails, though the log has it. A mark after that carries it with the object, of
// which the state knows nothing: else a crash would make the object one that is there.
func TestI3AReplayThatAFailedWriteHasLeftIsCarried(t *testing.T) {
	p := newPost(t)
	p.config.MarkLag = 1
	p.live(func(line *Inlet) {
		p.push(line, update(pods(), "a", 1))
		p.drain(line, pods())
	})
	p.target.memory.append([]sink.Message{{ID: idOf(update(pods(), "huge", 5))}, {ID: idOf(update(pods(), "b", 9))}})
	p.target.max(10)
	p.live(func(line *Inlet) {
		gone := large("huge", 5)
		gone.Op, gone.Position = change.Deleted, change.Position{ResourceVersion: "2"}
		p.push(line, gone)
		p.drain(line, pods())
		p.target.max(1 << 20)
		p.target.after = failing(once("deleted"))
		if err := p.replay(p.only(), false); err != nil {
			t.Error(err)
		}
		p.push(line, update(services(), "x", 3))
		p.drain(line, services())
	})
	p.expect("a/1/updated huge/5/updated b/9/updated huge/5/gap huge/5/deleted x/3/updated", "")
	p.live(func(line *Inlet) {
		if got := line.SinkOnly(pods()); len(got) != 1 || got[0].Key.Name != "b" {
			t.Errorf("the sink-only objects are %+v", got)
		}
	})
}
