package source

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// crowd is a Line and an Inventory of many objects, which keeps of each only whether it is there. What is pushed counts
// as delivered and saved at once.
type crowd struct {
	mu      sync.Mutex
	there   []bool
	left    int
	again   int           // deletes of what was gone
	few     chan struct{} // closed when four fifths are left
	emptied chan struct{} // closed when none is
	ended   chan struct{} // closed when the snapshot has
}

func newCrowd(n int) *crowd {
	c := &crowd{there: make([]bool, n), left: n, few: make(chan struct{}), emptied: make(chan struct{}), ended: make(chan struct{})}
	for i := range c.there {
		c.there[i] = true
	}
	return c
}

// crowdName has as many digits for each, so that the names are sorted.
func crowdName(i int) string { return strconv.Itoa(1_000_000 + i) }

// place is the object's of the name.
func (c *crowd) place(name string) int {
	n, err := strconv.Atoi(name)
	if err != nil {
		panic(err)
	}
	return n - 1_000_000
}

func (c *crowd) entry(i int) change.Entry {
	name := crowdName(i)
	return change.Entry{Key: change.Key{Namespace: "n", Name: name}, UID: "uid-" + name, ResourceVersion: "1"}
}

func (c *crowd) Push(_ context.Context, rec *change.Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch rec.Op {
	case change.SnapshotEnd:
		close(c.ended)
	case change.Deleted:
		i := c.place(rec.Key.Name)
		if !c.there[i] {
			c.again++
			return nil
		}
		c.there[i] = false
		switch c.left--; c.left {
		case len(c.there) * 4 / 5:
			close(c.few)
		case 0:
			close(c.emptied)
		}
	}
	return nil
}

func (c *crowd) Drain(ctx context.Context, _ change.Stream) error { return ctx.Err() }

func (c *crowd) Pace(ctx context.Context, _ *change.Stream, _ string, _ int) (bool, error) {
	return false, ctx.Err()
}

func (c *crowd) SinkOnly(change.Stream) []change.SinkOnly { return nil }

func (c *crowd) Ended(string, string, string) (bool, error) { return false, nil }

func (c *crowd) Lookup(_ string, key change.Key) (change.Entry, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.place(key.Name)
	return c.entry(i), c.there[i], nil
}

func (c *crowd) Scan(_, behind string) iter.Seq2[change.Entry, error] {
	return func(yield func(change.Entry, error) bool) {
		for i := range c.there {
			c.mu.Lock()
			there := c.there[i]
			c.mu.Unlock()
			if entry := c.entry(i); there && entry.Key.String() > behind && !yield(entry, nil) {
				return
			}
		}
	}
}

// TestI6ManyDeletesDuringASnapshotTakeBoundedMemory: 100,000 objects are deleted while the first list is read, and four
// times as many more while the next ones are. Each is told once, the snapshot ends, and what it remembers stays small.
func TestI6ManyDeletesDuringASnapshotTakeBoundedMemory(t *testing.T) {
	const many, bound = 500_000, 64 << 20 // more, were none forgotten
	told := newCrowd(many)
	server := script(t, 100)
	server.version = func() int { return 100 + many }
	before := heapInUse()
	var most uint64
	server.list = func(q url.Values) (int, string) {
		if q.Get("resourceVersion") == "100" {
			<-told.few
			return http.StatusOK, podList(100, "", crowdName(0)+" 1")
		}
		<-told.emptied
		return http.StatusOK, podList(100+many, "")
	}
	server.watch = func(_ url.Values, w *watchWriter) {
		for i := range many {
			fmt.Fprintf(w, "%s\n", frameOf(fmt.Sprintf("DELETED %s %d", crowdName(i), 101+i)))
			if i%20_000 == 0 {
				most = max(most, heapInUse())
			}
		}
		w.hold()
	}
	server.startInto(told, newRecorder(), at(100)).Request(requestedFor("lake")...)
	<-told.ended
	if most > before+bound {
		t.Errorf("it took %d bytes, want at most %d", most-before, bound)
	}
	if told.again > 0 {
		t.Errorf("%d deletes were told again", told.again)
	}
}

// heapInUse is what is alive.
func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
