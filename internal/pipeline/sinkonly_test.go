package pipeline

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// blind is a reconcile at version 20 by somebody who did not know the sink-only objects: it finds a changed, and
// another b in the place of the one that the state does not know.
func blind() []*change.Record {
	begin := found(update(pods(), "", 20), change.SnapshotBegin, change.Gone, "20")
	begin.UID = ""
	return []*change.Record{begin, found(update(pods(), "a", 2), change.Replaced, change.Gone, "20"), anotherB(15), endAt(20)}
}

// endAt ends a reconcile at the version.
func endAt(version int) *change.Record {
	at := strconv.Itoa(version)
	end := found(update(pods(), "", version), change.SnapshotEnd, change.Gone, at)
	end.UID, end.Position = "", change.Position{ResourceVersion: at, Complete: true}
	return end
}

// unseenC tells the sink that c is gone, as a reconcile at version 30 does that knows of it.
func unseenC() *change.Record {
	rec := found(update(pods(), "c", 4), change.Deleted, change.Gone, "30")
	rec.FinalStateUnknown, rec.Sink = true, "s"
	return rec
}

func anotherB(version int) *change.Record {
	rec := found(update(pods(), "b", version), change.Replaced, change.Gone, "20")
	rec.UID = "another"
	return rec
}

const blindTold = "a/1/updated a/2/updated b/3/updated c/4/updated /20/snapshot.begin b/3/deleted b/15/replaced c/4/deleted /20/snapshot.end"

// withSinkOnly is a rig whose sink's log holds a, b and c, which the state does not know, and which opens when it may.
func withSinkOnly(t *testing.T, policy string) (*rig, *late) {
	before := &memory{}
	r := crashed(t, before, update(pods(), "a", 2), update(pods(), "b", 3), update(pods(), "c", 4))
	target := &late{may: make(chan struct{})}
	target.log = before.log
	s := &r.config.Sinks[0]
	s.Target, r.config.OpenGrace = target, time.Millisecond
	if policy != "block" {
		s.Spool, s.Coalesce = 1<<20, policy == "coalesce"
	}
	return r, target
}

// expectLog wants the ids in the log, and that no other life tells anything again.
func (r *rig) expectLog(target *late, want string) {
	r.t.Helper()
	if got := target.short(); got != want {
		r.t.Errorf("log is\n%s, want\n%s", got, want)
	}
	r.requests = nil
	if err := r.life(func(line *Inlet) {
		r.await("the open sink", func() bool { return line.listeners[0].IsJoined() })
		r.drain(line, pods())
		if sinkOnly := line.SinkOnly(pods()); len(sinkOnly) > 0 {
			r.t.Errorf("the next life knows of %+v", sinkOnly)
		}
	}); err != nil {
		r.t.Error(err)
	}
	if got := target.short(); got != want || r.requested() != "" {
		r.t.Errorf("the next life makes it\n%s, and asks for %q", got, r.requested())
	}
}

// A reconcile ran before the sink was open whose log holds what the reconcile did not know. The sink hears of each
// delete once, where the reconcile would have told it: before the next object of the name, and before the end.
func TestI4LateSinkIsToldOfSinkOnlyObjectsByTheRecordsOfAReconcileThatDidNotKnowThem(t *testing.T) {
	for _, policy := range []string{"block", "spool", "coalesce"} {
		t.Run(policy, func(t *testing.T) {
			r, target := withSinkOnly(t, policy)
			if err := r.life(func(line *Inlet) {
				if sinkOnly := line.SinkOnly(pods()); len(sinkOnly) != 0 {
					t.Errorf("before the log is read its sink-only objects are %v", sinkOnly)
				}
				r.push(line, blind()...)
				if policy == "spool" {
					line.listeners[0].Member().Patience.SpillNow()
					r.drain(line, pods())
				}
				close(target.may)
				r.await("the end", func() bool { return strings.HasSuffix(target.short(), "end") })
				r.drain(line, pods())
			}); err != nil || r.requested() != "" {
				t.Fatalf("%v; asked for %q", err, r.requested())
			}
			r.expectLog(target, blindTold)
		})
	}
}

// The reconcile is on disk when the process is killed, and after it another one that tells of a sink-only object
// itself. The next process opens the sink in time, and nobody asks any more.
func TestI4SinkOnlyObjectsAreToldByARecordOnDiskOfAnEarlierProcess(t *testing.T) {
	for _, policy := range []string{"spool", "coalesce"} {
		t.Run(policy, func(t *testing.T) {
			r, target := withSinkOnly(t, policy)
			if err := r.life(func(line *Inlet) {
				r.push(line, blind()...)
				r.push(line, unseenC(), endAt(30))
				line.listeners[0].Member().Patience.SpillNow()
				r.drain(line, pods())
			}); err != nil {
				t.Fatal(err)
			}
			close(target.may)
			r.config.OpenGrace = time.Minute
			if err := r.life(func(line *Inlet) {
				r.await("the end", func() bool { return strings.HasSuffix(target.short(), "/30/snapshot.end") })
				r.push(line, bookmark(pods(), "31"))
				r.drain(line, pods())
			}); err != nil {
				t.Fatal(err)
			}
			r.expectLog(target, blindTold+" /30/snapshot.end")
		})
	}
}

// The write that has the deletes fails after the first of them, and then between a batch and its acknowledgement. Each
// is told once.
func TestI3DeletesOfSinkOnlyObjectsSurviveAFailedWriteOnce(t *testing.T) {
	for kept := range 6 {
		r, target := withSinkOnly(t, "block")
		failed := false
		target.fault = func(_ context.Context, batch []sink.Message) error {
			if failed || len(batch) < 5 {
				return nil
			}
			failed = true
			target.append(batch[:min(kept, len(batch))])
			return errors.New("connection lost")
		}
		if err := r.life(func(line *Inlet) {
			r.push(line, blind()...)
			close(target.may)
			r.drain(line, pods())
		}); err != nil || !failed {
			t.Fatalf("%v; failed is %t", err, failed)
		}
		r.expectLog(target, blindTold)
	}
}

// A sink that rejects the delete of a sink-only object has a note in its place, and what was queued is counted as
// before.
func TestI1RejectedDeleteOfASinkOnlyObjectAcknowledgesNothing(t *testing.T) {
	r, target := withSinkOnly(t, "block")
	target.fault = func(_ context.Context, batch []sink.Message) error {
		if at := slices.IndexFunc(batch, func(m sink.Message) bool { return strings.HasSuffix(m.ID, "b/uid-b/3/deleted") }); at >= 0 {
			return &sink.RejectedError{Index: at, Reason: "invalid", Err: errors.New("no")}
		}
		return nil
	}
	if err := r.life(func(line *Inlet) {
		r.push(line, blind()...)
		close(target.may)
		r.drain(line, pods())
		if left := line.listeners[0].Unsaved(); left != 0 {
			t.Errorf("%d records are left", left)
		}
	}); err != nil {
		t.Fatal(err)
	}
	r.expectLog(target, strings.Replace(blindTold, "b/3/deleted", "b/3/gap", 1))
}

// What the user does not want is not told of sink-only objects, either.
func TestDeletesOfSinkOnlyObjectsAreShapedAsOthers(t *testing.T) {
	r, target := withSinkOnly(t, "block")
	r.config.Sources[0].Shape = func(rec *change.Record) { rec.Filtered = rec.Op == change.Deleted }
	if err := r.life(func(line *Inlet) {
		r.push(line, blind()...)
		close(target.may)
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	r.expectLog(target, strings.NewReplacer("b/3/deleted ", "", "c/4/deleted ", "").Replace(blindTold))
}

// An object that is there at the end of a reconcile is none that is gone: the state has it, it is in line though no
// sink wants it, or what comes after the reconcile, on disk as well, tells how it ended.
func TestI3WhatIsInLineOrInTheStateIsNotToldAsGone(t *testing.T) {
	for _, policy := range []string{"block", "spool", "coalesce"} {
		for _, then := range []string{"", "updated", "deleted"} {
			t.Run(policy+" "+then, func(t *testing.T) {
				r, target := withSinkOnly(t, policy)
				same := found(update(pods(), "c", 4), change.Replaced, change.Gone, "20")
				same.Filtered = true
				records, want := slices.Insert(blind(), 3, same), strings.Replace(blindTold, " c/4/deleted", "", 1)
				if then != "" {
					after := update(pods(), "c", 21)
					after.Op = change.ParseOp(then)
					records, want = append(records, after), want+" c/21/"+then
				}
				if err := r.life(func(line *Inlet) {
					r.push(line, records...)
					if policy == "spool" {
						line.listeners[0].Member().Patience.SpillNow()
						r.drain(line, pods())
					}
					close(target.may)
					r.await("the end", func() bool { return strings.HasSuffix(target.short(), want[len(want)-10:]) })
					r.push(line, bookmark(pods(), "22"))
					r.drain(line, pods())
				}); err != nil {
					t.Fatal(err)
				}
				r.expectLog(target, want)
			})
		}
	}
}

// A delete is in line from the moment it is pushed; where a queue that coalesces leaves it out, the object that came
// next is.
func TestI3WhatIsInLineOfASinkOnlyObjectIsNotAskedFor(t *testing.T) {
	r, target := withSinkOnly(t, "coalesce")
	close(target.may)
	r.config.OpenGrace = time.Minute
	writes, release := make(chan struct{}, 100), make(chan struct{})
	target.fault = func(context.Context, []sink.Message) error {
		writes <- struct{}{}
		<-release
		return nil
	}
	sinkOnly := func(line *Inlet) string {
		var all []string
		for _, object := range line.SinkOnly(pods()) {
			all = append(all, object.Key.Name)
		}
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	if err := r.life(func(line *Inlet) {
		defer close(release)
		r.push(line, update(services(), "x", 3))
		<-writes
		gone, again := update(pods(), "c", 9), update(pods(), "c", 10)
		gone.Op, gone.Position, again.Position = change.Deleted, change.Position{ResourceVersion: "2"}, change.Position{ResourceVersion: "2"}
		r.push(line, gone) // it is merged away, and saved with a position that does not pass the log's tail
		if got := sinkOnly(line); got != "a b" {
			t.Errorf("while the delete of c is in line the sink-only objects are %q", got)
		}
		r.push(line, again)
		if got := sinkOnly(line); got != "a b" {
			t.Errorf("while the next object of its key is in line the sink-only objects are %q", got)
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// The delete of a comparison went in line before the log was read, after a batch that the sink is slow to take.
// Meanwhile a snapshot asks for its object. The sink hears of one of the two deletes.
func TestI3DeleteThatWasInLineBeforeTheLogWasReadIsToldOnce(t *testing.T) {
	r, target := withSinkOnly(t, "block")
	r.config.Sinks[0].Queue.Bytes = 16 << 20
	release := target.hang()
	gone := unseenC()
	gone.Sink = ""
	if err := r.life(func(line *Inlet) {
		defer release()
		r.push(line, append([]*change.Record{wholeBatch()}, slices.Insert(blind(), 3, gone)...)...)
		close(target.may)
		r.await("the open sink", func() bool { return line.listeners[0].IsJoined() })
		if sinkOnly := line.SinkOnly(pods()); len(sinkOnly) != 3 {
			t.Errorf("the sink-only objects are %v", sinkOnly)
		}
		r.push(line, unseenC(), endAt(30))
		release()
		r.await("the end", func() bool { return strings.HasSuffix(target.short(), "/30/snapshot.end") })
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	r.expectLog(target, strings.Replace(blindTold, "/20/snapshot.begin", "x/3/updated /20/snapshot.begin", 1)+" /30/snapshot.end")
}
