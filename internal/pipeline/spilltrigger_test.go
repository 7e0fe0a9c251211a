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
	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

func merging(name string, target sink.Sink, records int) delivery.Sink {
	s := spooling(name, target, records)
	s.Coalesce = true
	return s
}

// gone is the delete of an object that update told of, and again the object that took its place.
func gone(stream change.Stream, name string, version int) *change.Record {
	rec := update(stream, name, version)
	rec.Op = change.Deleted
	return rec
}

func again(stream change.Stream, name, uid string, version int) *change.Record {
	rec := update(stream, name, version)
	rec.Op, rec.UID = change.Added, uid
	return rec
}

// aged is a record that was received so long ago.
func aged(rec *change.Record, age time.Duration) *change.Record {
	rec.Received = rec.Received.Add(-age)
	return rec
}

// within is for what would hang if it failed.
func within(t *testing.T, do func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := do(ctx); err != nil {
		t.Error(err)
	}
}

// hung pushes a record that the sink hangs in.
func (r *rig) hung(line *Inlet, target *memory, rec *change.Record) (release func()) {
	inside := make(chan struct{}, 100)
	open := target.hang()
	hang := target.fault
	target.fault = func(ctx context.Context, batch []sink.Message) error {
		inside <- struct{}{}
		return hang(ctx, batch)
	}
	r.push(line, rec)
	<-inside
	return open
}

// TestI3AFullCoalescingQueueGoesToDiskMerged: the position moves on, what comes later merges in memory after it, and
// of no object a record overtakes an older one.
func TestI3AFullCoalescingQueueGoesToDiskMerged(t *testing.T) {
	slow := &memory{}
	r := newRig(t, merging("slow", slow, 3)) // alone, so that nobody else parts what goes to disk
	merged := 0
	r.config.Observer.Coalesced = func(_ string, n int) { merged += n }
	if err := r.life(func(line *Inlet) {
		release := r.hung(line, slow, update(pods(), "in flight", 1))
		r.push(line, update(pods(), "a", 2), update(pods(), "b", 3), update(pods(), "c", 4))
		r.push(line, update(pods(), "b", 5), update(pods(), "a", 6), gone(pods(), "c", 7)) // in memory
		r.push(line, update(pods(), "d", 8))                                               // for which there is no room
		r.push(line, again(pods(), "c", "uid-c2", 9), update(pods(), "a", 10), update(pods(), "a", 11))
		r.await("the position", func() bool { return r.position(pods()) >= "7" || len(r.position(pods())) == 2 })
		release()
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	want := "in flight/1/updated a/6/updated b/5/updated c/7/deleted d/8/updated c/9/added a/11/updated"
	if got := slow.short(); got != want || merged != 4 {
		t.Errorf("the log is\n%s\nwant\n%s\n%d records were merged, want 4", got, want, merged)
	}
}

// TestI1ASinkThatCoalescesHoldsNobodyUp, however long it is away: the window of what is not saved fills, a reconcile
// waits for what came before it, and the oldest record grows old. What it was being given goes to disk, too.
func TestI1ASinkThatCoalescesHoldsNobodyUp(t *testing.T) {
	for name, use := range map[string]func(r *rig, line *Inlet){
		"an old record": func(r *rig, line *Inlet) {
			r.push(line, update(pods(), "a", 32))
			r.await("the position", func() bool { return r.position(pods()) == "32" })
		},
		"a reconcile": func(r *rig, line *Inlet) {
			r.push(line, aged(update(pods(), "a", 3), 10*time.Second))
			within(t, func(ctx context.Context) error { return line.Drain(ctx, pods()) })
		},
		"a full window": func(r *rig, line *Inlet) {
			r.push(line, aged(update(pods(), "a", 2), 10*time.Second))
			for i := range 20 { // more than the window has room for, and of another sink
				rec := update(pods(), "large", 30+i)
				rec.Sink, rec.Object = "fast", make([]byte, 2<<20)
				within(t, func(ctx context.Context) error { return line.Push(ctx, rec) })
			}
			r.await("the other sink", func() bool { return r.position(pods()) >= "2" })
		},
		"a sink that spools": func(r *rig, line *Inlet) {
			for i := 2; i < 13; i++ {
				r.push(line, aged(update(pods(), "a", i), 10*time.Second))
			}
			r.await("the position", func() bool { return len(r.position(pods())) == 2 })
			r.push(line, update(pods(), "a", 3))
		},
	} {
		t.Run(name, func(t *testing.T) {
			slow, other, fast := &memory{}, &memory{}, &memory{}
			r := newRig(t, merging("slow", slow, 100), spooling("other", other, 4), sinkOf("fast", fast))
			if name == "a sink that spools" {
				other.hang()
			}
			if err := r.life(func(line *Inlet) {
				age := 10 * time.Second
				if name == "an old record" {
					age = time.Minute
				}
				r.hung(line, slow, aged(update(pods(), "a", 1), age))
				use(r, line)
			}); err != nil {
				var left *LeftError
				if !errors.As(err, &left) {
					t.Fatal(err)
				}
			}
			slow.fault, other.fault = nil, nil
			if err := r.life(func(line *Inlet) { r.push(line, update(pods(), "z", 99)); r.drain(line, pods()) }); err != nil {
				t.Fatal(err)
			}
			told := strings.Fields(slow.short())
			if !strings.HasPrefix(slow.short(), "a/1/updated ") || !strings.HasSuffix(slow.short(), "/updated z/99/updated") || len(slices.Compact(told)) != len(told) {
				t.Errorf("the log is %s", slow.short())
			}
		})
	}
}

// TestI3ADeleteBehindWhatIsOnDiskIsTold: the sink will have the object by then. One of what never left memory is not.
func TestI3ADeleteBehindWhatIsOnDiskIsTold(t *testing.T) {
	slow := &memory{}
	r := newRig(t, merging("slow", slow, 3))
	if err := r.life(func(line *Inlet) {
		release := r.hung(line, slow, update(pods(), "a", 1))
		r.push(line, gone(pods(), "a", 2), again(pods(), "a", "uid-2", 3), update(pods(), "b", 4))
		r.push(line, update(pods(), "c", 5)) // for which there is no room
		r.await("the position", func() bool { return r.position(pods()) >= "4" })
		deleted := gone(pods(), "a", 6)
		deleted.UID = "uid-2"
		r.push(line, deleted, again(pods(), "a", "uid-3", 7))
		deleted = gone(pods(), "a", 8)
		deleted.UID = "uid-3"
		r.push(line, deleted)
		release()
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	want := "a/1/updated a/2/deleted a/3/added b/4/updated c/5/updated a/6/deleted"
	if got := slow.short(); got != want {
		t.Errorf("the log is\n%s\nwant\n%s", got, want)
	}
}

// TestASpoolOfOnePolicyIsDeliveredByTheOther, whichever came first.
func TestASpoolOfOnePolicyIsDeliveredByTheOther(t *testing.T) {
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprintf("it coalesced %t", first), func(t *testing.T) {
			slow := &memory{}
			r := newRig(t, spooling("slow", slow, 2))
			r.config.Sinks[0].Coalesce = first
			if err := r.life(func(line *Inlet) {
				r.hung(line, slow, update(pods(), "a", 1))
				for i := 2; i <= 9; i++ {
					r.push(line, update(pods(), fmt.Sprint("p", i), i))
				}
				r.await("the position", func() bool { return r.position(pods()) >= "6" })
			}); err != nil {
				t.Fatal(err)
			}
			slow.fault = nil
			r.config.Sinks[0].Coalesce = !first
			if err := r.life(func(line *Inlet) {
				r.push(line, update(pods(), "z", 10))
				r.drain(line, pods())
				r.await("the last", func() bool { return strings.HasSuffix(slow.short(), "z/10/updated") })
			}); err != nil {
				t.Fatal(err)
			}
			if got, want := slow.short(), "a/1/updated p2/2/updated p3/3/updated p4/4/updated p5/5/updated p6/6/updated p7/7/updated p8/8/updated p9/9/updated z/10/updated"; got != want {
				t.Errorf("the log is %s", got)
			}
		})
	}
}

// TestI6AboveItsLimitASinkThatCoalescesKeepsThePosition, as one that spools does, and goes on when there is room.
func TestI6AboveItsLimitASinkThatCoalescesKeepsThePosition(t *testing.T) {
	slow := &memory{}
	s := merging("slow", slow, 2)
	s.Spool = 1 // any chunk is more
	r := newRig(t, s)
	if err := r.life(func(line *Inlet) {
		release := r.hung(line, slow, update(pods(), "a", 1))
		r.push(line, update(pods(), "b", 2), update(pods(), "c", 3))
		r.push(line, aged(update(pods(), "d", 4), time.Hour), update(pods(), "d", 5))
		r.await("a spool", func() bool { spool, err := r.store.Spool("slow"); return err == nil && spool.Records() > 0 })
		spool, err := r.store.Spool("slow")
		if err != nil || spool[fifo.Main].Records > 2 {
			t.Errorf("on disk are %+v, %v; want no more than a queue", spool, err)
		}
		if r.position(pods()) > "4" { // which is superseded
			t.Errorf("the position is %s, and there was no room for more", r.position(pods()))
		}
		release()
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	if got, want := slow.short(), "a/1/updated b/2/updated c/3/updated d/5/updated"; got != want {
		t.Errorf("the log is %s, want %s", got, want)
	}
}
