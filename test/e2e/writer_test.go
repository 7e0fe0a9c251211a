package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
)

// writer changes objects of all kinds at once, one worker a kind, so that what it does to each object is a known
// sequence. What it does comes from a seed; when, does not.
type writer struct {
	workers []*worker
	bulks   []*worker
	ledger  *ledger
	cancel  context.CancelFunc
	done    sync.WaitGroup

	seed     uint64
	finished int // how often

	mu  sync.Mutex // guards the following
	err error
}

func newWriter(kinds []*kind, client dynamic.Interface, ledger *ledger, seed uint64) *writer {
	w := &writer{ledger: ledger, cancel: func() {}, seed: seed}
	for i, k := range kinds {
		w.workers = append(w.workers, newWorker(k, client, ledger, rand.New(rand.NewPCG(seed, uint64(i)))))
	}
	return w
}

// pace is the pause between two changes of one worker. Seven workers make some 200 changes a second. E2E_PACE is how
// many milliseconds it takes.
func pace(t *testing.T) time.Duration {
	t.Helper()
	return time.Duration(number(t, "E2E_PACE", 30)) * time.Millisecond
}

// start lets all workers work until stop.
func (w *writer) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w.cancel = cancel
	pace := pace(t)
	for _, worker := range w.workers {
		w.done.Go(func() { w.note(worker.run(ctx, pace)) })
	}
	t.Cleanup(func() { cancel(); w.done.Wait() })
}

// stop returns when every worker has finished its change, and fails the test if one could not.
func (w *writer) stop(t *testing.T) {
	t.Helper()
	w.cancel()
	w.done.Wait()
	w.check(t)
}

// check fails the test if a worker has failed.
func (w *writer) check(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		t.Fatal(w.err)
	}
}

func (w *writer) note(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

// populate makes every object once.
func (w *writer) populate(t *testing.T) {
	t.Helper()
	w.each(t, func(ctx context.Context, worker *worker) error { return worker.createAll(ctx) })
}

// hands is how many workers share the objects of a bulk.
const hands = 8

// bulk makes n more objects of one kind, which nobody changes before stir.
func (w *writer) bulk(t *testing.T, n int) {
	t.Helper()
	first := len(w.bulks)
	for hand := range hands {
		helper := *w.workers[1]
		helper.slots = nil
		for i := range n / hands {
			helper.slots = append(helper.slots, &slot{name: fmt.Sprintf("bulk-%d-%d", len(w.workers)+first+hand, i)})
		}
		w.bulks = append(w.bulks, &helper)
	}
	w.together(t, w.bulks[first:], func(ctx context.Context, helper *worker) error { return helper.createAll(ctx) })
}

// stir makes those who made the bulks change their objects, too, from the next start on.
func (w *writer) stir() {
	for i, helper := range w.bulks {
		helper.random = rand.New(rand.NewPCG(w.seed, uint64(100+i)))
	}
	w.workers = append(w.workers, w.bulks...)
	w.bulks = nil
}

// change lets every worker make n changes.
func (w *writer) change(t *testing.T, n int) {
	t.Helper()
	w.each(t, func(ctx context.Context, worker *worker) error {
		for range n {
			if err := worker.step(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// disturb lets every worker delete an object, delete another and make it again, and update a third. It returns the uids
// of the deleted.
func (w *writer) disturb(t *testing.T) []string {
	t.Helper()
	var mu sync.Mutex
	var deleted []string
	w.each(t, func(ctx context.Context, worker *worker) error {
		uids, err := worker.disturb(ctx)
		mu.Lock()
		defer mu.Unlock()
		deleted = append(deleted, uids...)
		return err
	})
	return deleted
}

// each lets all workers do the same at once, and returns when all have done it.
func (w *writer) each(t *testing.T, do func(context.Context, *worker) error) {
	t.Helper()
	w.together(t, w.workers, do)
}

func (w *writer) together(t *testing.T, workers []*worker, do func(context.Context, *worker) error) {
	t.Helper()
	for _, worker := range workers {
		w.done.Go(func() { w.note(do(t.Context(), worker)) })
	}
	w.done.Wait()
	w.check(t)
}

// there are the uids of the objects that the workers have made and not deleted.
func (w *writer) there() []string {
	var uids []string
	for _, worker := range w.workers {
		for _, s := range worker.slots {
			if s.object != nil {
				uids = append(uids, string(s.object.GetUID()))
			}
		}
	}
	return uids
}

// forget drops the objects of a resource: they were deleted by others.
func (w *writer) forget(resource string) {
	for _, worker := range w.workers {
		if worker.kind.name() != resource {
			continue
		}
		for _, s := range worker.slots {
			s.object = nil
		}
	}
}

// adopt takes the objects as they are: the etcd was restored.
func (w *writer) adopt(t *testing.T) {
	t.Helper()
	w.each(t, func(ctx context.Context, worker *worker) error {
		for _, s := range worker.slots {
			var err error
			if s.object, err = worker.readBack(ctx, s.name); err != nil {
				return err
			}
		}
		return nil
	})
}

// finish makes one last object of each resource and returns their uids: what is written in order has delivered
// everything when it has delivered these.
func (w *writer) finish(t *testing.T) []string {
	t.Helper()
	var uids []string
	w.finished++
	last := map[string]*worker{}
	for _, worker := range w.workers {
		last[worker.kind.name()] = worker
	}
	for _, worker := range last {
		s := &slot{name: fmt.Sprintf("zz-end-%d-%d", w.seed, w.finished)}
		if err := worker.create(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		uids = append(uids, string(s.object.GetUID()))
	}
	return uids
}
