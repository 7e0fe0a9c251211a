package pipeline

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Line is where sources put their records: it numbers them, hands each to the listeners that want it, and knows which
// of them are delivered. All streams and all listeners share it.
type Line struct {
	listeners []*listener
	images    *Images // nil where no objects are kept

	markLag     uint64 // how far a mark may lag before it carries what keeps it back
	mostCarried int    // bytes of ids that a mark carries at most

	saving  sync.Mutex  // held while marks are saved, and no longer than one attempt takes; guards the following
	durable []sink.Mark // by listener: the mark that is saved

	mu      sync.Mutex // guards the following
	number  fifo.Numberer
	streams map[string]*progress
	name    []byte            // of a stream, while it is looked for
	recent  *change.Stream    // the one that was looked for last
	found   *progress         // what came of it; nil is none
	resume  []resumePoint     // by listener
	leaving []*change.Record  // given to the committer, and not part of the saved state yet
	window  *fifo.Queue       // room for what is not saved yet; it only counts
	told    []checkpoint.Held // what listeners have told by themselves, for the next batch
	anyAway atomic.Bool       // some listener misses some stream, or did
	wake    chan struct{}     // buffered 1: the committer has work
	moved   chan struct{}     // buffered 1: a bookmark came, and the committer has work that can wait
	changed chan struct{}     // closed and made anew when something was saved
}

func newLine(listeners []*listener) *Line {
	l := &Line{
		listeners: listeners,
		streams:   map[string]*progress{},
		resume:    make([]resumePoint, len(listeners)),
		durable:   make([]sink.Mark, len(listeners)),
		window:    fifo.NewQueue(windowLimit(listeners)),
		wake:      make(chan struct{}, 1),
		moved:     make(chan struct{}, 1),
		changed:   make(chan struct{}),

		markLag: defaultMarkLag, mostCarried: maxCarried,
	}
	return l
}

// Push puts the record in line and gives it its Seq. It blocks while a queue that wants the record is full, or too much
// is not saved yet, and returns ctx's error if ctx ends first; the record is then in no queue. Records of one stream
// must be pushed by one goroutine at a time, in their order (I3).
func (l *Line) Push(ctx context.Context, rec *change.Record) error {
	// Once a record was refused, none of its stream may follow: room may have come since, and the position would pass
	// over the one that is missing (I2).
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	wanted := l.wanted(rec)
	if err := l.enter(ctx, rec); err != nil {
		return err
	}
	if err := l.reserve(ctx, rec, wanted); err != nil {
		l.leave(rec.Size())
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.number.Number(rec)
	l.images.note(rec)
	p := l.of(rec)
	if p == nil {
		p = l.progress(rec.Stream.String())
	}
	wanted = l.admits(rec, p, wanted)
	if err := p.tracker.Add(rec, wanted); err != nil {
		return fmt.Errorf("track record %d of %s: %w", rec.Seq, rec.Stream, err)
	}
	p.added++
	p.takers |= wanted
	wake, err := l.hand(rec, wanted)
	if err != nil {
		return err
	}
	switch {
	case wake:
		l.wakeCommitter()
	case rec.Op == change.Bookmark:
		signal(l.moved)
	}
	return nil
}

// hand queues the record for the listeners that want it, and says whether the committer has work. The caller holds mu.
func (l *Line) hand(rec *change.Record, wanted uint64) (wake bool, err error) {
	wake = wanted == 0 && rec.Op != change.Bookmark
	for i, lst := range l.listeners {
		// whoever that is for, the reconcile has told of all sink-only objects
		if wanted&(1<<i) != 0 || rec.Op == change.SnapshotEnd {
			lst.recovery.enters(rec, lst.clusterUID)
		}
		if wanted&(1<<i) != 0 {
			merged, spools := lst.push(rec)
			if err := l.forgo(i, merged); err != nil {
				return false, err
			}
			wake = wake || spools || len(merged) > 0
		}
		wake = lst.overdue(rec.Received) || wake
	}
	return wake, nil
}

// forgo acknowledges records that a newer one of the same object has made superfluous for the listener, and which its
// sink will never be given. That is early, and right: the newer one is in line and not acknowledged, so that the
// position stays before it, and a crash brings it again. The caller holds mu.
func (l *Line) forgo(listener int, merged []*change.Record) error {
	for _, rec := range merged {
		if err := l.of(rec).tracker.Spare(listener, rec.Seq); err != nil {
			return fmt.Errorf("leave out record %d of %s: %w", rec.Seq, rec.Stream, err)
		}
	}
	if len(merged) > 0 {
		lst := l.listeners[listener]
		for _, rec := range merged {
			lst.recovery.with(func(r *recovery) { r.log.Leaves(rec) })
		}
		lst.observer.Coalesced(lst.Name, len(merged))
	}
	return nil
}

// wanted is the set of listeners that must write the record, as a bit mask. What a user does not want, and a
// bookmark, move the position and are nobody's.
func (l *Line) wanted(rec *change.Record) uint64 {
	var mask uint64
	if rec.Op == change.Bookmark || rec.Filtered {
		return mask
	}
	for i, lst := range l.listeners {
		if lst.wants(rec) {
			mask |= 1 << i
		}
	}
	if mask != 0 && l.anyAway.Load() {
		l.mu.Lock()
		defer l.mu.Unlock()
		mask &^= l.awayFrom(rec)
	}
	return mask
}

// reserve takes room in every wanted queue, one after the other. A stream that waits for one queue holds up no other
// stream.
func (l *Line) reserve(ctx context.Context, rec *change.Record, wanted uint64) error {
	for i, lst := range l.listeners {
		if wanted&(1<<i) == 0 {
			continue
		}
		if err := lst.reserve(ctx, rec); err != nil {
			for j := range i {
				if wanted&(1<<j) != 0 {
					l.listeners[j].cancel(rec.Size())
				}
			}
			return err
		}
	}
	return nil
}

// wakeCommitter tells the committer that trackers moved, or should.
func (l *Line) wakeCommitter() { signal(l.wake) }

// signal makes whoever receives of the channel, which is buffered 1, look once more.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Drain returns when everything that the stream pushed before is delivered and saved, or with ctx's error. What sinks
// that come back have missed is known then.
func (l *Line) Drain(ctx context.Context, stream change.Stream) error {
	l.mu.Lock()
	p := l.progress(stream.String())
	goal := p.added
	l.mu.Unlock()
	l.wakeCommitter() // the last record may be a bookmark
	if err := l.await(ctx, func() bool { return p.committed >= goal }); err != nil {
		return err
	}
	return l.recallMissed(stream.String())
}

// behind is how many records of the stream are not delivered and saved.
func (l *Line) behind(stream change.Stream) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.progress(stream.String())
	return p.added - p.committed
}

// SinkOnly are the stream's objects that a sink's log holds and the saved state does not know, or no longer.
func (l *Line) SinkOnly(stream change.Stream) []change.SinkOnly {
	var sinkOnly []change.SinkOnly
	for _, lst := range l.listeners {
		sinkOnly = append(sinkOnly, lst.recovery.sinkOnly(lst.Name, stream.String())...)
	}
	return sinkOnly
}
