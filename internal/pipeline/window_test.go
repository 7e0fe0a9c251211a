package pipeline

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// TestI6ASnapshotGoesOnBehindAStuckSink that has room in its queue: the other sink gets all of it.
func TestI6ASnapshotGoesOnBehindAStuckSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		hangs := sinkOf("hangs", &memory{fault: func(context.Context, []sink.Message) error { <-stuck; return nil }})
		well := &memory{}
		other := sinkOf("well", well)
		hangs.Queue, other.Queue = fifo.Limit{Bytes: 64 << 20, Records: 1000}, fifo.Limit{Bytes: 64 << 20, Records: 1000}
		r := newRig(t, hangs, other)
		const objects = 12 // of 1 MiB, three times what a snapshot is ahead of the sinks
		if err := r.life(func(line *Inlet) {
			snapshot := &change.Snapshot{ID: "1", Reason: change.Initial, ResourceVersion: "100"}
			pushed := make(chan struct{})
			go func() {
				defer close(pushed)
				for i := range objects {
					rec := update(pods(), string(rune('a'+i)), i+1)
					rec.Op, rec.Snapshot, rec.Object = change.Replaced, snapshot, make([]byte, 1<<20)
					rec.Position = change.Position{}
					r.push(line, rec)
				}
			}()
			select {
			case <-pushed:
			case <-time.After(time.Hour):
				t.Error("the snapshot waits for the sink that hangs")
			}
			synctest.Wait()
			if got := strings.Count(well.short(), "replaced"); got != objects {
				t.Errorf("the other sink has %d objects of %d", got, objects)
			}
			close(stuck)
			<-pushed
			r.drain(line, pods())
		}); err != nil {
			t.Fatal(err)
		}
	})
}
