package pipeline

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// gate is a fault that holds every Write until it is opened.
func gate() (fault func(context.Context, []sink.Message) error, entered chan struct{}, open chan struct{}) {
	entered, open = make(chan struct{}, 100), make(chan struct{})
	return func(ctx context.Context, _ []sink.Message) error {
		entered <- struct{}{}
		select {
		case <-open:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, entered, open
}

func TestI1PositionWaitsForEverySink(t *testing.T) {
	fault, entered, open := gate()
	slow, fast := &memory{fault: fault}, &memory{}
	r := newRig(t, sinkOf("fast", fast), sinkOf("slow", slow))
	written := make(chan struct{}, 10)
	r.config.Observer.Written = func(name string, _ []*change.Record, _ time.Duration) {
		if name == "fast" {
			written <- struct{}{}
		}
	}
	err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 5))
		<-written
		<-entered
		if got := r.position(pods()); got != "" {
			t.Errorf("position %s is saved although a sink does not have the record", got)
		}
		close(open)
		r.drain(line, pods())
		if got := r.position(pods()); got != "5" {
			t.Errorf("position is %q, want 5", got)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestI2StreamWaitsOnlyForTheSinksThatWantIt(t *testing.T) {
	fault, entered, open := gate()
	stuck := sinkOf("stuck", &memory{fault: fault})
	stuck.Wants = func(s *change.Stream) bool { return s.String() == "pods" }
	all := &memory{}
	r := newRig(t, sinkOf("all", all), stuck)
	err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 5))
		<-entered
		r.push(line, update(services(), "b", 6))
		r.drain(line, services())
		if got := r.position(services()) + "|" + r.position(pods()); got != "6|" {
			t.Errorf("positions are %q, want services at 6 and no pods", got)
		}
		close(open)
	})
	if err != nil || r.requested() != "" {
		t.Fatalf("%v; requests %q", err, r.requested())
	}
}

func TestI3FailedWriteIsRepeatedInOrderAndOnce(t *testing.T) {
	target := &memory{}
	failures := 0
	target.fault = func(_ context.Context, batch []sink.Message) error {
		if failures++; failures == 1 {
			target.append(batch[:1]) // a prefix got through before the connection broke
			return errors.New("connection broken")
		}
		return nil
	}
	r := newRig(t, sinkOf("s", target))
	err := r.life(func(line *Inlet) {
		for v := 1; v <= 50; v++ {
			r.push(line, update(pods(), "a", v))
		}
		r.drain(line, pods())
	})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for v := 1; v <= 50; v++ {
		want = append(want, "a/"+update(pods(), "a", v).ResourceVersion+"/updated")
	}
	if got := target.short(); got != strings.Join(want, " ") {
		t.Errorf("log is %s", got)
	}
	if len(r.failures) != 1 {
		t.Errorf("failures told: %q, want one", r.failures)
	}
}

func TestI4RejectedRecordLeavesAGapInItsPlace(t *testing.T) {
	target := &memory{}
	target.fault = func(_ context.Context, batch []sink.Message) error {
		for i, message := range batch {
			if message.Op == "updated" && strings.Contains(message.ID, "/huge/") {
				return &sink.RejectedError{Index: i, Reason: "too_large", Err: errors.New("above the limit")}
			}
		}
		return nil
	}
	r := newRig(t, sinkOf("s", target))
	rejected := ""
	r.config.Observer.Rejected = func(name string, rec *change.Record, reason string, err error) {
		rejected += name + " " + rec.Key.Name + " " + reason + " " + err.Error()
	}
	err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 1), update(pods(), "huge", 2), update(pods(), "b", 3))
		r.drain(line, pods())
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := target.short(), "a/1/updated huge/2/gap b/3/updated"; got != want {
		t.Errorf("log is %s, want %s", got, want)
	}
	if want := "s huge too_large above the limit"; rejected != want {
		t.Errorf("told %q, want %q", rejected, want)
	}
}

func TestI5BookmarkMovesThePositionBehindTheRecordsBeforeIt(t *testing.T) {
	fault, entered, open := gate()
	target := &memory{fault: fault}
	r := newRig(t, sinkOf("s", target))
	stream := pods()
	bookmark := &change.Record{Stream: &stream, Op: change.Bookmark, Position: change.Position{ResourceVersion: "9", Complete: true}}
	err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 5), bookmark)
		<-entered
		if got := r.position(pods()); got != "" {
			t.Errorf("position %s is saved before the record below the bookmark is delivered", got)
		}
		close(open)
		r.drain(line, pods())
		if got := r.position(pods()); got != "9" {
			t.Errorf("position is %q, want the bookmark's 9", got)
		}
	})
	if err != nil || target.short() != "a/5/updated" {
		t.Fatalf("%v; log %s", err, target.short())
	}
}

func TestI6FullQueueHoldsThePusher(t *testing.T) {
	fault, entered, open := gate()
	target := &memory{fault: fault}
	s := sinkOf("s", target)
	s.Queue = fifo.Limit{Bytes: 1 << 20, Records: 1}
	r := newRig(t, s)
	err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 1))
		<-entered // the first is being written and the queue is empty
		r.push(line, update(pods(), "b", 2))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("gave up"))
		if err := line.Push(ctx, update(pods(), "c", 3)); err == nil || err.Error() != "gave up" {
			t.Errorf("a third record was taken: %v", err)
		}
		pushed := make(chan error)
		go func() { pushed <- line.Push(t.Context(), update(pods(), "d", 4)) }()
		close(open)
		if err := <-pushed; err != nil {
			t.Error(err)
		}
	})
	if want := "a/1/updated b/2/updated d/4/updated"; err != nil || target.short() != want {
		t.Fatalf("%v; log %s, want %s", err, target.short(), want)
	}
}

func TestI7StopDeliversWhatIsQueued(t *testing.T) {
	target := &memory{}
	r := newRig(t, sinkOf("s", target))
	err := r.life(func(line *Inlet) { r.push(line, update(pods(), "a", 1), update(pods(), "b", 2)) })
	if want := "a/1/updated b/2/updated"; err != nil || target.short() != want {
		t.Fatalf("%v; log %s, want %s", err, target.short(), want)
	}
	r.life(func(*Inlet) {
		if got := r.position(pods()); got != "2" {
			t.Errorf("position after the stop is %q, want 2", got)
		}
	})
}

func TestI7StopAfterTheDeadlineSaysWhatIsLeft(t *testing.T) {
	fault, entered, _ := gate()
	target := &memory{fault: fault}
	r := newRig(t, sinkOf("s", target))
	r.config.StopTimeout = 50 * time.Millisecond
	err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 1))
		<-entered
		r.push(line, update(pods(), "b", 2))
	})
	const want = "stop within 50ms: left undelivered: sink s: 2 records: the next start continues there"
	if err == nil || err.Error() != want {
		t.Fatalf("error is %v, want %s", err, want)
	}
}

func TestPermanentErrorEndsTheRun(t *testing.T) {
	target := &memory{fault: func(context.Context, []sink.Message) error {
		return &sink.PermanentError{Err: errors.New("fenced by another writer")}
	}}
	r := newRig(t, sinkOf("s", target))
	ended := make(chan struct{})
	r.config.Sources[0].Run = func(ctx context.Context, line *Inlet) error {
		r.line <- line
		<-ctx.Done()
		close(ended)
		return nil
	}
	err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 1))
		<-ended // without anybody stopping it
	})
	if err == nil || !strings.HasPrefix(err.Error(), "deliver to sink s: fenced by another writer") {
		t.Fatalf("error is %v", err)
	}
}
