package line

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// Line is where sources put their records: it numbers them, hands each to the listeners that want it, and knows which
// of them are delivered. All streams and all listeners share it.
type Line struct {
	Options
	seats   []*seat
	wake    chan struct{} // buffered 1: the committer has work
	moved   chan struct{} // buffered 1: a bookmark came, and the committer has work that can wait
	anyAway atomic.Bool   // some listener misses some stream, or did

	mu      sync.Mutex // guards the following, and what the seats know
	number  fifo.Numberer
	streams streams
	window  window
	told    []checkpoint.Held // what listeners have told by themselves, for the next batch
}

// Options are a line's.
type Options struct {
	ClusterUID string
	Images     *Images // nil where no objects are kept
	// MarkLag is how many records a mark may lag before it carries what keeps it back; 0 is 4096.
	MarkLag uint64
	// MostCarried is how many bytes of ids a mark carries; 0 is 64 MiB.
	MostCarried int
}

// New makes a line to the listeners.
func New(members []Member, o Options) *Line {
	o.MarkLag, o.MostCarried = cmp.Or(o.MarkLag, defaultMarkLag), cmp.Or(o.MostCarried, maxCarried)
	l := &Line{
		Options: o,
		streams: streams{byName: map[string]*progress{}},
		window:  window{used: fifo.NewQueue(windowLimit(members)), changed: make(chan struct{})},
		wake:    make(chan struct{}, 1),
		moved:   make(chan struct{}, 1),
	}
	for i, m := range members {
		l.seats = append(l.seats, &seat{Member: m, index: i})
	}
	return l
}

// await returns when reached says so, which is asked under mu now and whenever something was saved, or with ctx's
// error. Meanwhile it sees to it that nobody is waited for who can be spooled for.
func (l *Line) await(ctx context.Context, reached func() bool) error {
	var patience *time.Ticker
	l.mu.Lock()
	defer l.mu.Unlock()
	for !reached() {
		changed := l.window.changed
		if patience == nil {
			patience = time.NewTicker(OvercommitAfter)
			defer patience.Stop()
		}
		l.mu.Unlock()
		impatient, err := wait(ctx, changed, patience.C)
		l.mu.Lock()
		if err != nil {
			return err
		}
		if impatient && relieve(l.seats, &l.streams) {
			l.Wake()
		}
	}
	return nil
}

// wait returns when changed is closed, when patience ends, or with ctx's error.
func wait(ctx context.Context, changed <-chan struct{}, patience <-chan time.Time) (impatient bool, err error) {
	select {
	case <-changed:
		return false, nil
	case <-patience:
		return true, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// Wake tells the committer that trackers moved, or should.
func (l *Line) Wake() { signal(l.wake) }

// signal makes whoever receives of the channel, which is buffered 1, look once more.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// isStuck says whether some sink has not taken its oldest record for long. The caller holds mu.
func (l *Line) isStuck() bool { return l.streams.holders(time.Now(), MergeFor) != 0 }
