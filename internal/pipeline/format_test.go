package pipeline

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// toyFormat is one that asks a registry for each record: err says what the registry answers.
type toyFormat struct {
	delivery.Encoder
	err func(ctx context.Context, rec *change.Record) error
}

func (f toyFormat) Encode(ctx context.Context, dst []sink.Message, rec *change.Record) ([]sink.Message, error) {
	if err := f.err(ctx, rec); err != nil {
		return dst, err
	}
	return f.Encoder.Encode(ctx, dst, rec)
}

// A format that fails holds the record back, and all after it, until it works: what comes before is delivered, and
// everything once.
func TestI3AFormatThatFailsIsTriedAgain(t *testing.T) {
	fault, entered, open := gate()
	target, failures := &memory{fault: fault}, 2
	s := sinkOf("s", target)
	s.Encoder = toyFormat{s.Encoder, func(_ context.Context, rec *change.Record) error {
		if rec.Key.Name != "b" || failures == 0 {
			return nil
		}
		if got := target.short(); got != "first/1/updated" && got != "first/1/updated a/2/updated" {
			t.Errorf("before the failed record the log is %s", got)
		}
		failures--
		return errors.New("the registry does not answer")
	}}
	r := newRig(t, s)
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "first", 1))
		<-entered // what follows is one batch
		r.push(line, update(pods(), "a", 2), update(pods(), "b", 3), update(pods(), "a", 4))
		close(open)
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	if got, want := target.short(), "first/1/updated a/2/updated b/3/updated a/4/updated"; got != want || failures != 0 {
		t.Errorf("log is %s, want %s", got, want)
	}
	if !slices.Contains(r.failures, "s: the registry does not answer") {
		t.Errorf("told %q", r.failures)
	}
}

// What a format says of a record itself rejects that record alone: it is kept, and a note stands in its place.
func TestI4ARecordThatHasNoFormIsRejected(t *testing.T) {
	p := newPost(t)
	s := &p.config.Sinks[0]
	s.Encoder = toyFormat{s.Encoder, func(_ context.Context, rec *change.Record) error {
		if rec.Key.Name == "odd" && rec.Op != change.Gap {
			return &sink.RejectedError{Reason: "schema", Err: errors.New("the registry refuses its schema")}
		}
		return nil
	}}
	odd := update(pods(), "odd", 2)
	p.live(func(line *Inlet) {
		p.push(line, update(pods(), "a", 1), odd, update(pods(), "b", 3))
		p.drain(line, pods())
	})
	p.expect("a/1/updated odd/2/gap b/3/updated", "odd/2/schema")
	if l := p.only(); string(l.Object) != string(odd.Object) || l.Event != odd.ID(clusterUID).String() || l.Value != nil {
		t.Errorf("the letter of event %s has object %s and value %q", l.Event, l.Object, l.Value)
	}
}

// A run ends while a format waits for its registry.
func TestI7AFormatThatWaitsEndsWithTheRun(t *testing.T) {
	target, asked := &memory{}, make(chan struct{})
	s := sinkOf("s", target)
	s.Encoder = toyFormat{s.Encoder, func(ctx context.Context, _ *change.Record) error {
		close(asked)
		<-ctx.Done()
		return context.Cause(ctx)
	}}
	r := newRig(t, s)
	r.config.StopTimeout = 1
	err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 1))
		<-asked
	})
	var left *LeftError
	if !errors.As(err, &left) || left.Queued["s"] != 1 || strings.Contains(target.short(), "a") {
		t.Errorf("ended with %v, log %s", err, target.short())
	}
}
