package pipeline

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// broken is a fault that lasts until it is mended.
func broken(text string) (fault func(context.Context, []sink.Message) error, mended *atomic.Bool) {
	mended = new(atomic.Bool)
	return func(context.Context, []sink.Message) error {
		if mended.Load() {
			return nil
		}
		return &sink.PermanentError{Err: errors.New(text)}
	}, mended
}

// eventually waits until the log is as wanted; the bubble's clock goes on meanwhile.
func (m *memory) eventually(t *testing.T, want string) {
	t.Helper()
	for range 24 * 60 {
		if synctest.Wait(); m.short() == want {
			return
		}
		time.Sleep(time.Minute)
	}
	t.Errorf("log is %q, want %q", m.short(), want)
}

func TestI1ASinkThatFailsForGoodStopsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fault, mended := broken("the password is wrong")
		bad, good := &memory{fault: fault}, &memory{}
		r := newRig(t, sinkOf("bad", bad), sinkOf("good", good))
		var stopped []string
		r.config.Observer.Stopped = func(name string, err error) { r.note(&stopped, name+": "+err.Error()) }
		err := r.life(func(line *Inlet) {
			r.push(line, update(pods(), "a", 5))
			good.eventually(t, "a/5/updated")
			r.push(line, update(pods(), "a", 6))
			good.eventually(t, "a/5/updated a/6/updated")
			if got := r.position(pods()); got != "" {
				t.Errorf("position %s is saved although a sink does not have the record", got)
			}
			mended.Store(true)
			bad.eventually(t, "a/5/updated a/6/updated")
			r.drain(line, pods())
		})
		if err != nil || len(stopped) == 0 || stopped[0] != "bad: deliver to sink bad: the password is wrong" {
			t.Errorf("%v; stopped %q", err, stopped)
		}
	})
}

func TestASinkThatCannotBeOpenedForGoodStopsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad, good := &memory{lost: &sink.PermanentError{Err: errors.New("no such user")}}, &memory{}
		r := newRig(t, sinkOf("bad", bad), sinkOf("good", good))
		err := r.life(func(line *Inlet) {
			r.push(line, update(pods(), "a", 5))
			good.eventually(t, "a/5/updated")
			bad.eventually(t, "a/5/updated") // it is opened again after a minute
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestASinkThatDoesNotOpenAtFirstIsOpenedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, good := &memory{lost: errors.New("the broker does not answer")}, &memory{}
		r := newRig(t, sinkOf("slow", slow), sinkOf("good", good))
		err := r.life(func(line *Inlet) {
			r.push(line, update(pods(), "a", 5))
			good.eventually(t, "a/5/updated")
			slow.eventually(t, "a/5/updated")
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestTheRunEndsWithTheLastSinkThatStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fault, _ := broken("fenced")
		r := newRig(t, sinkOf("a", &memory{lost: &sink.PermanentError{Err: errors.New("no such user")}}), sinkOf("b", &memory{fault: fault}))
		ended := make(chan struct{})
		r.config.Sources[0].Run = func(ctx context.Context, line *Inlet) error {
			r.line <- line
			<-ctx.Done()
			close(ended)
			return nil
		}
		err := r.life(func(line *Inlet) {
			r.push(line, update(pods(), "a", 5))
			<-ended // without anybody stopping it
		})
		if err == nil || !strings.HasPrefix(err.Error(), "open sink a: no such user\ndeliver to sink b: fenced") {
			t.Errorf("the run ends with %v", err)
		}
	})
}

func TestTheRunDoesNotBeginWhereNoSinkCanBeOpened(t *testing.T) {
	wrong := func(text string) delivery.Sink {
		return sinkOf(text, &memory{lost: &sink.PermanentError{Err: errors.New("wrong " + text)}})
	}
	r := newRig(t, wrong("a"), wrong("b"))
	err := r.life(func(*Inlet) { t.Error("it began") })
	if want := "open sink a: wrong a\nopen sink b: wrong b"; err == nil || err.Error() != want {
		t.Errorf("the run ends with %v, want %s", err, want)
	}
}

func TestI7AStopDoesNotWaitForASinkThatIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fault, _ := broken("fenced")
		good := &memory{}
		r := newRig(t, sinkOf("bad", &memory{fault: fault}), sinkOf("good", good))
		var began time.Time
		err := r.life(func(line *Inlet) {
			r.push(line, update(pods(), "a", 5))
			good.eventually(t, "a/5/updated")
			began = time.Now()
		})
		var left *LeftError
		if !errors.As(err, &left) || left.Queued["bad"] != 1 || time.Since(began) > time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

func TestASinkThatDoesNotTakeTheNoteStopsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad, good := &memory{}, &memory{}
		bad.fault = func(context.Context, []sink.Message) error {
			return &sink.RejectedError{Reason: "too_large", Err: errors.New("above the limit")}
		}
		r := newRig(t, sinkOf("bad", bad), sinkOf("good", good))
		var stopped []string
		r.config.Observer.Stopped = func(name string, err error) { r.note(&stopped, name+": "+err.Error()) }
		err := r.life(func(line *Inlet) {
			r.push(line, update(pods(), "a", 5))
			good.eventually(t, "a/5/updated")
			r.push(line, update(pods(), "b", 6))
			good.eventually(t, "a/5/updated b/6/updated")
		})
		var left *LeftError
		if !errors.As(err, &left) || len(stopped) != 1 || !strings.Contains(stopped[0], "even the note of a rejected record is rejected") {
			t.Errorf("%v; stopped %q", err, stopped)
		}
	})
}

func TestOversizeRejectStopsTheSinkAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited, good := &memory{}, &memory{}
		limit := new(atomic.Bool)
		limited.fault = func(_ context.Context, batch []sink.Message) error {
			for i, message := range batch {
				if strings.Contains(message.ID, "/huge/") && !limit.Load() {
					return &sink.RejectedError{Index: i, Reason: "too_large", Err: errors.New("above the limit")}
				}
			}
			return nil
		}
		s := sinkOf("limited", limited)
		s.Oversize.Reject = true
		r := newRig(t, s, sinkOf("good", good))
		err := r.life(func(line *Inlet) {
			r.push(line, update(pods(), "a", 5), update(pods(), "huge", 6), update(pods(), "b", 7))
			good.eventually(t, "a/5/updated huge/6/updated b/7/updated")
			limited.eventually(t, "a/5/updated")
			limit.Store(true) // somebody raises it
			limited.eventually(t, "a/5/updated huge/6/updated b/7/updated")
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// Whoever opened a sink again that another writer took over would end the other one, and be ended by it in turn.
func TestI10ASinkThatIsTakenOverIsNotOpenedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := new(atomic.Int32)
		bad, good := &memory{}, &memory{}
		bad.fault = func(context.Context, []sink.Message) error {
			attempts.Add(1)
			return &sink.PermanentError{Err: errors.New("another exporter writes to the stream"), Fenced: true}
		}
		r := newRig(t, sinkOf("bad", bad), sinkOf("good", good))
		_ = r.life(func(line *Inlet) {
			r.push(line, update(pods(), "a", 5))
			good.eventually(t, "a/5/updated")
			time.Sleep(time.Hour)
			if n := attempts.Load(); n != 1 {
				t.Errorf("%d attempts within an hour, want 1", n)
			}
		})
	})
}
