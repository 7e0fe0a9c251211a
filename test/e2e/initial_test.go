package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestI4NoChangeBehindTheFirstBeginIsMissing: kills and orderly stops interrupt the initial snapshot of thousands of
// ConfigMaps, which are changed, deleted and made again meanwhile, and the API server forgets a list that takes long.
// A watch of the test's own knows every version after the first begin: each arrives once, in order, and nothing is a
// gap. E2E_KILLS is how many interruptions there are, E2E_OBJECTS how many ConfigMaps, and E2E_COMPACT how
// many milliseconds a list lives.
func TestI4NoChangeBehindTheFirstBeginIsMissing(t *testing.T) {
	r, network := newProxiedRig(t, world{})
	r.summon()
	r.exporter.configure(t, fmt.Sprintf("- nats: {url: %[1]q, stream: %[2]s}\n  queue: {records: %[3]d}\n- file: {path: %[4]q}\n  queue: {records: %[3]d}\n",
		"nats://"+network.address(), streamName, 8, r.path())) // the exporter is not fast: its queues are short
	r.many(number(t, "E2E_OBJECTS", 1600))
	r.writer.start(t)
	stop := r.compactEvery(time.Duration(number(t, "E2E_COMPACT", 1000)) * time.Millisecond)
	random := rand.New(rand.NewPCG(seed(t), 8000))
	times, stops := kills(t, 5), 0
	interrupted := map[string]int{} // by sink: how often
	for range times {
		r.startAndWait(random)
		if random.IntN(3) > 0 {
			r.exporter.process.Kill()
		} else {
			stops++
			r.exporter.interrupt(t)
		}
		for _, sink := range r.sinks() {
			if sink.isGivenASnapshot(t, "configmaps") {
				interrupted[sink.name]++
			}
		}
	}
	r.startAndWait(random)
	began := time.Now()
	r.awaitCompared(time.Hour)
	t.Logf("the rest of the snapshot took %v", time.Since(began).Round(time.Second))
	r.settle()
	t.Logf("%d compactions", stop())
	r.exporter.stop(t)
	for _, j := range r.judge(false) {
		if interrupted[j.sink] == 0 {
			t.Errorf("sink %s: no snapshot of configmaps was interrupted, which proves nothing", j.sink)
		}
		t.Logf("sink %s: %d kills and %d stops interrupted the first snapshot of configmaps %d times", j.sink, times-stops, stops, interrupted[j.sink])
	}
}

// isGivenASnapshot says whether a snapshot of the resource has begun in the sink, and has not ended.
func (f *follower) isGivenASnapshot(t *testing.T, resource string) (is bool) {
	t.Helper()
	for _, e := range f.all(t) {
		if e.kind() == resource && strings.HasPrefix(e.op(), "snapshot.") {
			is = e.op() == "snapshot.begin"
		}
	}
	return is
}

// compactEvery has etcd forget its history again and again, until stop, which says how often it did.
func (r *rig) compactEvery(interval time.Duration) (stop func() int) {
	ctx, cancel := context.WithCancel(r.t.Context())
	n, ended := 0, make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if _, err := r.cluster.Compact(ctx); err == nil {
				n++
			}
		}
	}()
	return func() int { cancel(); <-ended; return n }
}

// many makes all objects and so many ConfigMaps more.
func (r *rig) many(n int) {
	r.t.Helper()
	r.writer.populate(r.t)
	r.writer.bulk(r.t, n)
	r.writer.stir()
}

// startAndWait returns at some moment after the first event of a life.
func (r *rig) startAndWait(random *rand.Rand) {
	r.t.Helper()
	before := len(r.file.all(r.t))
	r.exporter.start(r.t)
	r.file.awaitMore(r.t, r.exporter, before+1)
	select {
	case <-time.After(time.Duration(random.Int64N(int64(300 * time.Millisecond)))):
	case <-r.exporter.process.Exited:
		r.t.Fatalf("the exporter ended by itself:\n%s", r.exporter.lastLines(r.t))
	}
}
