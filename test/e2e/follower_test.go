package e2e

import (
	"context"
	"strconv"
	"testing"
	"time"
)

// follower reads a sink from its begin on, as events come.
type follower struct {
	name   string
	events []event
	more   func(ctx context.Context, have int) ([]event, error)
	again  func() *follower // one that begins anew
}

func followStream(b *broker) *follower { return followLog(b.open()) }

func followLog(log *streamLog) *follower {
	return &follower{
		name:  "nats",
		more:  func(ctx context.Context, have int) ([]event, error) { return log.read(ctx, uint64(have)+1) },
		again: func() *follower { return followLog(log) },
	}
}

func followFile(path string) *follower {
	offset := int64(0)
	return &follower{
		name: "file",
		more: func(_ context.Context, have int) ([]event, error) {
			events, end, err := readLines(path, offset, have+1)
			offset = end
			return events, err
		},
		again: func() *follower { return followFile(path) },
	}
}

// readLimit is for one reading of a sink, which may have to wait for the leaders of partitions.
const readLimit = 10 * time.Minute

// read takes what is new, and returns it.
func (f *follower) read(t *testing.T) []event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), readLimit)
	defer cancel()
	events, err := f.more(ctx, len(f.events))
	if err != nil {
		t.Fatal(err)
	}
	f.events = append(f.events, events...)
	return events
}

// all reads everything.
func (f *follower) all(t *testing.T) []event {
	t.Helper()
	f.read(t)
	return f.events
}

// deliveryLimit is how long everything may take on a machine that is busy with other tests.
const deliveryLimit = 4 * time.Minute

// await returns when there is such an event, of those read before or new.
func (f *follower) await(t *testing.T, x *exporter, what string, wanted func(*event) bool) {
	t.Helper()
	looked := 0
	deadline := time.Now().Add(deliveryLimit)
	eventually(t, 2*deliveryLimit, what+" is in the sink "+f.name, func() bool {
		ended := !x.process.Running()
		f.read(t)
		for ; looked < len(f.events); looked++ {
			if wanted(&f.events[looked]) {
				return true
			}
		}
		if ended || time.Now().After(deadline) {
			t.Fatalf("%s did not come to the sink %s within %s (the exporter has ended: %v); it says:\n%s", what, f.name, deliveryLimit, ended, x.lastLines(t))
		}
		return false
	})
}

// awaitObjects returns when all of the uids are there.
func (f *follower) awaitObjects(t *testing.T, x *exporter, uids ...string) {
	t.Helper()
	for _, uid := range uids {
		f.await(t, x, "object "+uid, func(e *event) bool { return e.UID == uid })
	}
}

// awaitEnd returns when a full snapshot of the resource and the reason has ended.
func (f *follower) awaitEnd(t *testing.T, x *exporter, resource, reason string) {
	t.Helper()
	f.await(t, x, "the end of a snapshot of "+resource, func(e *event) bool {
		return e.op() == "snapshot.end" && e.kind() == resource && e.Reason == reason
	})
}

// awaitMore returns when there are so many events.
func (f *follower) awaitMore(t *testing.T, x *exporter, events int) {
	t.Helper()
	f.await(t, x, "event "+strconv.Itoa(events), func(e *event) bool { return e.place >= events })
}
