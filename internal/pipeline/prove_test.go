package pipeline

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// claims is a log of the state, in which a claim of another member fences this one.
type claims struct {
	moved  atomic.Bool  // another member has claimed it
	silent atomic.Bool  // its broker does not answer
	proofs atomic.Int32 // that succeeded
}

func (c *claims) prove(context.Context) error {
	switch {
	case c.silent.Load():
		return errors.New("the broker does not answer")
	case c.moved.Load():
		return &sink.PermanentError{Err: errors.New("another exporter writes it"), Fenced: true}
	}
	c.proofs.Add(1)
	return nil
}

// TestI3I10NothingIsWrittenBehindAnOpeningThatIsNotProven: another member may lead since the sink was opened, or even
// before. Then what comes next is that one's to write, however the sink came to be opened.
func TestI3I10NothingIsWrittenBehindAnOpeningThatIsNotProven(t *testing.T) {
	for name, open := range map[string]func(r *rig, target *memory, line *Inlet){
		"again": func(r *rig, target *memory, line *Inlet) {
			target.fault = func(context.Context, []sink.Message) error {
				target.fault = nil
				return errors.New("the connection broke")
			}
			r.push(line, update(pods(), "a", 6))
		},
		"after it was stopped": func(r *rig, target *memory, line *Inlet) {
			target.fault = func(context.Context, []sink.Message) error {
				target.fault = nil
				return &sink.PermanentError{Err: errors.New("the password is wrong")}
			}
			r.push(line, update(pods(), "a", 6))
			time.Sleep(time.Hour)
		},
		"where its log lost records": func(r *rig, target *memory, line *Inlet) {
			target.fault = func(context.Context, []sink.Message) error {
				target.fault, target.lost = nil, &sink.LostError{Log: "log"}
				return errors.New("the connection broke")
			}
			r.push(line, update(pods(), "a", 6))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, target := &claims{}, &memory{}
				r := newRig(t, sinkOf("moved", target), sinkOf("good", &memory{}))
				var stopped []string
				r.config.Observer.Stopped = func(name string, err error) { r.note(&stopped, name+": "+err.Error()) }
				r.config.Prove = log.prove
				_ = r.life(func(line *Inlet) {
					r.push(line, update(pods(), "a", 5))
					r.drain(line, pods())
					log.moved.Store(true)
					open(r, target, line)
					synctest.Wait()
				})
				want := "moved: deliver to sink moved: another exporter writes it"
				if target.short() != "a/5/updated" || !slices.Contains(stopped, want) {
					t.Errorf("log is %s; stopped %q", target.short(), stopped)
				}
			})
		})
	}
}

// TestAnOpeningWaitsForItsProof and the other sinks do not. The sink is not opened anew for it: what its log lost is
// found once.
func TestAnOpeningWaitsForItsProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, slow, good := &claims{}, &memory{}, &memory{}
		r := newRig(t, sinkOf("slow", slow), sinkOf("good", good))
		r.config.Prove = log.prove
		err := r.life(func(line *Inlet) {
			log.silent.Store(true)
			slow.fault = func(context.Context, []sink.Message) error {
				slow.fault, slow.lost = nil, &sink.LostError{Log: "log"}
				return errors.New("the connection broke")
			}
			r.push(line, update(pods(), "a", 5))
			time.Sleep(10 * time.Minute)
			r.push(line, update(pods(), "a", 6))
			synctest.Wait()
			if good.short() != "a/5/updated a/6/updated" || slow.short() != "" {
				t.Errorf("the log that is proven has %s, the other one %s", good.short(), slow.short())
			}
			log.silent.Store(false)
			time.Sleep(time.Minute)
			r.drain(line, pods())
		})
		if err != nil || slow.short() != good.short() || log.proofs.Load() < 3 || len(slow.opens) > 3 {
			t.Errorf("%v; log is %s, opened %d times, %d proofs", err, slow.short(), len(slow.opens), log.proofs.Load())
		}
		if n := len(r.failures); n < 60 || n > 200 || !slices.Contains(r.failures, "slow: the broker does not answer") {
			t.Errorf("%d failures were told", n)
		}
		if r.requested() != "pods lost slow" && r.requested() != "pods lost slow, services lost slow" {
			t.Errorf("asked for %q", r.requested())
		}
	})
}

// TestI10ARunDoesNotBeginBehindAnotherLeader whatever it would find in the sinks' logs.
func TestI10ARunDoesNotBeginBehindAnotherLeader(t *testing.T) {
	log, target := &claims{}, &memory{}
	log.moved.Store(true)
	r := newRig(t, sinkOf("s", target))
	r.config.Prove = log.prove
	err := r.life(func(*Inlet) { t.Error("it began") })
	var refused *sink.PermanentError
	if !errors.As(err, &refused) || !refused.Fenced || len(target.opens) != 1 || target.short() != "" {
		t.Errorf("%v; opened %d times, log is %s", err, len(target.opens), target.short())
	}
}
