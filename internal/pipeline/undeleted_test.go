package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/line"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// recaller is a memory whose log can be read.
type recaller struct {
	*memory
	recalls int
}

func (r *recaller) Recall(_ context.Context, each func(string) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recalls++
	for _, id := range r.log {
		if err := each(id); err != nil {
			return err
		}
	}
	return nil
}

// forgetLast loses the newest records.
func (r *recaller) forgetLast(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = r.log[:len(r.log)-n]
}

func deleted(name string, version int) *change.Record {
	rec := update(pods(), name, version)
	rec.Op = change.Deleted
	return rec
}

// undeletedIn are the undeleted sink-only objects of the line, sorted.
func undeletedIn(line *Inlet) string {
	var names []string
	for _, object := range line.SinkOnly(pods()) {
		names = append(names, fmt.Sprintf("%s:%s@%s %t", object.Sink, object.Key.Name, object.ResourceVersion, object.Undeleted))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// TestI4ObjectsWhoseDeletesWereLostAreUndeleted until the sink is told, over restarts, and nobody else is.
func TestI4ObjectsWhoseDeletesWereLostAreUndeleted(t *testing.T) {
	target, other := &recaller{memory: &memory{}}, &recaller{memory: &memory{}}
	r := newRig(t, sinkOf("s", target), sinkOf("other", other))
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "there", 1), update(pods(), "gone", 2), update(pods(), "told", 3), update(pods(), "later", 4))
		r.push(line, deleted("told", 5), update(pods(), "short", 6), deleted("gone", 7), deleted("short", 8))
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	target.forgetLast(2)
	want := "s:gone@2 true, s:short@6 true"
	for life := range 2 { // the second one has a log that is as long as its mark says
		if err := r.life(func(line *Inlet) {
			if got := undeletedIn(line); got != want {
				t.Errorf("life %d: undeleted are %q, want %q", life, got, want)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	end := update(pods(), "", 8)
	end.Op, end.Sink, end.UID, end.Snapshot = change.SnapshotEnd, "s", "", &change.Snapshot{ID: "8.1", Reason: change.Lost}
	gone := deleted("gone", 2)
	gone.Sink, gone.FinalStateUnknown, gone.Snapshot = "s", true, end.Snapshot
	gone.Position, end.Position = change.Position{}, change.Position{}
	away := make(chan struct{})
	target.fault = func(ctx context.Context, _ []sink.Message) error {
		select {
		case <-away:
		case <-ctx.Done():
		}
		return nil
	}
	if err := r.life(func(line *Inlet) {
		r.push(line, gone)
		if got, want := undeletedIn(line), "s:short@6 true"; got != want { // another snapshot must not tell it once more
			t.Errorf("behind a delete in line undeleted are %q, want %q", got, want)
		}
		close(away)
		r.drain(line, pods())
		r.push(line, end)
		r.drain(line, pods())
		if got := undeletedIn(line); got != "" {
			t.Errorf("after the snapshot undeleted are %q", got)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := r.life(func(*Inlet) {}); err != nil {
		t.Fatal(err)
	}
	if target.recalls != 3 || other.recalls != 0 {
		t.Errorf("the logs were read %d and %d times, want 3 and 0", target.recalls, other.recalls)
	}
}

// TestI4ASnapshotBehindALostLogWaitsUntilTheLogIsRead: the life before noted it, and in this one the sink opens late.
// Only then is it known of which objects the log has lost the deletes.
func TestI4ASnapshotBehindALostLogWaitsUntilTheLogIsRead(t *testing.T) {
	target := &recaller{memory: &memory{}}
	r := newRig(t, sinkOf("s", target), sinkOf("other", &memory{}))
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "gone", 1), deleted("gone", 2))
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	target.forgetLast(1)
	if err := r.life(func(*Inlet) {}); err != nil {
		t.Fatal(err)
	}
	behind := &lateRecaller{recaller: target, may: make(chan struct{})}
	r.requests, r.config.Sinks[0].Target, r.config.OpenGrace = nil, behind, time.Millisecond
	if err := r.life(func(line *Inlet) {
		if got := r.requested(); got != "" {
			t.Errorf("before the log is read, %s is asked for", got)
		}
		close(behind.may)
		r.await("the snapshots", func() bool { return r.requested() == "pods lost s" })
		if got, want := undeletedIn(line), "s:gone@1 true"; got != want {
			t.Errorf("undeleted are %q, want %q", got, want)
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// lateRecaller is a recaller that opens when it may.
type lateRecaller struct {
	*recaller
	may chan struct{}
}

func (l *lateRecaller) Open(ctx context.Context, at sink.Opening) error {
	select {
	case <-l.may:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return l.recaller.Open(ctx, at)
}

// TestI3AnObjectWhoseDeleteIsOnDiskIsNotUndeleted: another delete would come after that one.
func TestI3AnObjectWhoseDeleteIsOnDiskIsNotUndeleted(t *testing.T) {
	target := &recaller{memory: &memory{}}
	r := newRig(t, spooling("s", target, 2))
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 1), update(pods(), "b", 2), deleted("b", 3))
		r.await("a delete", func() bool { return strings.HasSuffix(target.short(), "deleted") })
	}); err != nil {
		t.Fatal(err)
	}
	target.hang()
	if err := r.life(func(inlet *Inlet) {
		last := 4 + line.BatchLimit().Records // the first batch from disk has no delete
		for version := 4; version < last; version++ {
			r.push(inlet, update(pods(), "c", version))
		}
		r.push(inlet, deleted("a", last))
		r.drain(inlet, pods()) // to disk
	}); err != nil {
		t.Fatal(err)
	}
	target.forgetLast(1)
	if err := r.life(func(line *Inlet) {
		if got, want := undeletedIn(line), "s:b@2 true"; got != want {
			t.Errorf("undeleted are %q, want %q", got, want)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if target.recalls != 1 {
		t.Errorf("the log was read %d times, want 1", target.recalls)
	}
}

// TestI4AnEndThatIsLostWhileRunningLeavesObjectsUndeleted, and what the watch is still to bring is not undeleted.
func TestI4AnEndThatIsLostWhileRunningLeavesObjectsUndeleted(t *testing.T) {
	target := &recaller{memory: &memory{}}
	breaking := false
	target.fault = func(context.Context, []sink.Message) error {
		if !breaking {
			return nil
		}
		breaking = false
		target.forgetLast(1)
		return errors.New("the broker has lost its disk")
	}
	r := newRig(t, sinkOf("s", target))
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 1), update(pods(), "b", 2), deleted("a", 3))
		r.drain(line, pods())
		breaking = true
		r.push(line, update(pods(), "c", 4), deleted("c", 5))
		r.drain(line, pods())
		if got, want := undeletedIn(line), "s:a@1 true"; got != want {
			t.Errorf("undeleted are %q, want %q", got, want)
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// TestI4ADeleteThatALogLosesWhileItsBatchIsUnderWayLeavesItsObjectUndeleted: the sink had it from an earlier process,
// so that it is not written, and it is still on disk with the rest of its batch.
func TestI4ADeleteThatALogLosesWhileItsBatchIsUnderWayLeavesItsObjectUndeleted(t *testing.T) {
	target := &recaller{memory: &memory{}}
	r := newRig(t, spooling("s", target, 2))
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 1), update(pods(), "b", 2))
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	target.hang()
	if err := r.life(func(line *Inlet) {
		r.push(line, deleted("a", 3), deleted("b", 4), update(pods(), "c", 5), update(pods(), "c", 6))
		r.drain(line, pods()) // to disk
	}); err != nil {
		t.Fatal(err)
	}
	target.log = append(target.log, idOf(deleted("a", 3)))
	target.fault = func(context.Context, []sink.Message) error {
		target.fault = nil
		target.forgetLast(2)
		return errors.New("the broker has lost its disk")
	}
	if err := r.life(func(line *Inlet) {
		r.await("the last", func() bool { return strings.HasSuffix(target.short(), "c/6/updated") })
		if got, want := undeletedIn(line), "s:a@1 true"; got != want {
			t.Errorf("undeleted are %q, want %q", got, want)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if got, want := target.short(), "a/1/updated b/4/deleted c/5/updated c/6/updated"; got != want {
		t.Errorf("log is %s, want %s", got, want)
	}
}
