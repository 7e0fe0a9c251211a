package main

import (
	"context"
	"fmt"
	"iter"
	"os"
	"runtime"
	"sync"

	"github.com/kubecdc/kubecdc/bench/client"
	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/source"
)

// manyStreams is a number of streams for which the product chooses HTTP/2.
const manyStreams = 1000

// alive is what the exporter's collector finds alive at least while events come: the state's tables and caches, and
// what is queued (GODEBUG=gctrace=1 says 14 to 20 MB). Without it a process that has a stream alone collects with every
// 4 MB, and spends on that an eighth of its CPU time, where the exporter spends a hundredth.
const alive = 16 << 20

// runSource is the product up to the sink: the stream, and a line whose records are popped and dropped.
func runSource(ctx context.Context, spec client.Spec, meter *harness.Meter) error {
	rest := make([]byte, alive) // never written to: it takes no memory of the machine
	defer runtime.KeepAlive(rest)
	streams := 1
	if spec.HTTP2 {
		streams = manyStreams
	}
	connection, err := source.NewClient(spec.Config(), streams)
	if err != nil {
		return err
	}
	line := newDropLine()
	var consumer sync.WaitGroup
	consumer.Go(func() { line.consume(ctx, meter) })
	defer consumer.Wait()
	observer := source.NopObserver()
	observer.Failed = func(stream change.Stream, err error) { fmt.Fprintf(os.Stderr, "stream %s: %v\n", stream, err) }
	stream := source.NewStream(source.Config{
		Client:    connection,
		Stream:    change.Stream{Resource: change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}},
		Inventory: emptyInventory{},
		Saved:     change.Position{ResourceVersion: "1", Complete: true},
		Observer:  observer,
	})
	return stream.Run(ctx, line)
}

// emptyInventory is that of a fresh state.
type emptyInventory struct{}

func (emptyInventory) Ended(string, string, string) (bool, error) { return false, nil }

func (emptyInventory) Lookup(string, change.Key) (change.Entry, bool, error) {
	return change.Entry{}, false, nil
}

func (emptyInventory) Scan(string, string) iter.Seq2[change.Entry, error] {
	return func(func(change.Entry, error) bool) {}
}

// dropLine is a line with one queue, as the pipeline has it for a sink, and no state to save.
type dropLine struct {
	mu     sync.Mutex // guards the following
	number fifo.Numberer
	queue  *fifo.Queue

	ready chan struct{} // buffered 1: there is something to take
	freed chan struct{} // buffered 1: there is room again
}

func newDropLine() *dropLine {
	return &dropLine{
		queue: fifo.NewQueue(fifo.Limit{Bytes: 64 << 20, Records: 1 << 16}),
		ready: make(chan struct{}, 1),
		freed: make(chan struct{}, 1),
	}
}

// Push implements source.Line. It blocks while the queue is full.
func (l *dropLine) Push(ctx context.Context, rec *change.Record) error {
	for !l.tryPush(rec) {
		select {
		case <-l.freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	signal(l.ready)
	return nil
}

func (l *dropLine) tryPush(rec *change.Record) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if rec.Op == change.Bookmark {
		l.number.Number(rec)
		return true // it is nobody's
	}
	if !l.queue.Reserve(rec.Size()) {
		return false
	}
	l.number.Number(rec)
	l.queue.Push(rec, false)
	return true
}

// Drain implements source.Line: nothing is saved here.
func (l *dropLine) Drain(context.Context, change.Stream) error { return nil }

// Pace is source.Line's; there is no snapshot.
func (l *dropLine) Pace(ctx context.Context, _ *change.Stream, _ string, _ int) (waited bool, err error) {
	return false, ctx.Err()
}

// SinkOnly is source.Line's; there is no sink with a log.
func (l *dropLine) SinkOnly(change.Stream) []change.SinkOnly { return nil }

// consume takes what is queued, as a sink does in batches, and drops it.
func (l *dropLine) consume(ctx context.Context, meter *harness.Meter) {
	var batch []*change.Record
	for {
		select {
		case <-l.ready:
		case <-ctx.Done():
			return
		}
		l.mu.Lock()
		batch = l.queue.Pop(batch[:0], fifo.Limit{Bytes: 4 << 20, Records: 2048})
		more := l.queue.Len() > 0
		l.mu.Unlock()
		signal(l.freed)
		if more {
			signal(l.ready)
		}
		meter.Add(len(batch))
		clear(batch)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
