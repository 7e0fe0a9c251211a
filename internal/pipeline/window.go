package pipeline

import (
	"context"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// windowLimit bounds the records that are not saved yet, delivered or not: without it a state that cannot be saved
// would let them grow while the sinks are well (I6). It leaves every queue its whole room, so that a sink that is stuck
// holds up those streams alone that it takes.
func windowLimit(listeners []*listener) fifo.Limit {
	limit := fifo.Limit{Bytes: 16 << 20, Records: 1 << 14}
	for _, lst := range listeners {
		limit.Bytes += lst.Queue.Bytes + batchLimit().Bytes
		limit.Records += lst.Queue.Records + batchLimit().Records
	}
	return limit
}

// aheadOfSinks is how many bytes that are not saved yet a snapshot leaves to the line while the sinks take them: its
// list can be read again, and what it has read further only takes memory, however large the queues are. Behind a sink
// that takes nothing it goes on up to the queues' limits, for the others' sake.
const aheadOfSinks = 4 << 20

// enter takes room in the window of what is not saved yet.
func (l *Line) enter(ctx context.Context, rec *change.Record) error {
	return l.await(ctx, func() bool {
		if rec.Snapshot != nil && l.window.Used().Bytes > aheadOfSinks && l.holders(mergeFor) == 0 {
			return false
		}
		return l.window.Reserve(rec.Size())
	})
}

// await returns when reached says so, which is asked under mu now and whenever something was saved, or with ctx's
// error. Meanwhile it sees to it that nobody is waited for who can be spooled for.
func (l *Line) await(ctx context.Context, reached func() bool) error {
	var patience *time.Ticker
	l.mu.Lock()
	for !reached() {
		changed := l.changed
		l.mu.Unlock()
		if patience == nil {
			patience = time.NewTicker(overcommitAfter)
			defer patience.Stop()
		}
		select {
		case <-changed:
		case <-patience.C:
			l.spillForWaiting()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		l.mu.Lock()
	}
	l.mu.Unlock()
	return nil
}

// leave gives room in the window back.
func (l *Line) leave(size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.window.Cancel(size)
	l.signalChanged()
}

// signalChanged wakes all who wait for something to be saved; the caller holds mu.
func (l *Line) signalChanged() {
	close(l.changed)
	l.changed = make(chan struct{})
}
