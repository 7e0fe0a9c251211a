package source

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestI3I4AVersionSaysWhatFollows: each line of the rule.
func TestI3I4AVersionSaysWhatFollows(t *testing.T) {
	entry := func(uid, version string) change.Entry { return change.Entry{UID: uid, ResourceVersion: version} }
	for what, c := range map[string]struct {
		listing
		want verdict
	}{
		"the watch is not there yet":              {listing{version: "9", position: "8"}, ahead},
		"told at this version":                    {listing{version: "5", position: "8", last: entry("u", "5"), exists: true}, unchanged},
		"told at a version behind the list":       {listing{version: "5", position: "8", last: entry("u", "7"), exists: true}, outdated},
		"another was told behind the list":        {listing{version: "5", position: "8", last: entry("w", "7"), exists: true}, outdated},
		"told to be gone behind the list":         {listing{version: "5", position: "8", deleted: "7"}, outdated},
		"never told":                              {listing{version: "5", position: "8"}, drift},
		"told to be gone before the list":         {listing{version: "5", position: "8", deleted: "4"}, drift},
		"told at an older version":                {listing{version: "5", position: "8", last: entry("u", "4"), exists: true}, drift},
		"told at a newer one, as of the old list": {listing{version: "5", position: "8", last: entry("u", "6"), exists: true}, drift},
		"another was told":                        {listing{version: "5", position: "8", last: entry("w", "4"), exists: true}, another},
		"another was told at this version":        {listing{version: "5", position: "8", last: entry("w", "5"), exists: true}, another},
	} {
		c.uid, c.list = "u", "6"
		if got := c.judge(); got != c.want {
			t.Errorf("%s: verdict %d, want %d", what, got, c.want)
		}
	}
}

// TestI6RecentForgetsWhatTheInventoryHas: of what was told before the mark before the last only deletes are kept, whose
// keys the list has not passed.
func TestI6RecentForgetsWhatTheInventoryHas(t *testing.T) {
	var r recent
	r.note(named(change.Added, "early", "1"))
	r.begin()
	passed := func(key change.Key) bool { return key.Name < "m" }
	r.note(named(change.Added, "a", "2"))
	r.note(named(change.Deleted, "b", "3"))
	r.note(named(change.Deleted, "z", "4"))
	r.note(named(change.Sync, "s", "4"))
	r.next(passed)
	if len(r.byKey) != 3 {
		t.Errorf("behind one mark %v is remembered", r.byKey)
	}
	r.note(named(change.Updated, "a", "5"))
	r.next(passed)
	if _, known := r.byKey[named(0, "b", "").Key]; known || len(r.byKey) != 2 {
		t.Errorf("behind two marks %v is remembered, want a and z", r.byKey)
	}
	last, exists, _ := r.told(named(0, "a", "").Key, change.Entry{}, false)
	if _, found, deleted := r.told(named(0, "z", "").Key, change.Entry{ResourceVersion: "1"}, true); found || deleted != "4" || !exists || last.ResourceVersion != "5" {
		t.Errorf("told is %+v, and z exists %t, gone at %q", last, found, deleted)
	}
	r.next(passed)
	if r.forgetDeletes(); len(r.byKey) != 0 {
		t.Errorf("before a newer list %v is remembered", r.byKey)
	}
}

// named is a record of the object.
func named(op change.Op, name, version string) *change.Record {
	return &change.Record{Op: op, Key: change.Key{Namespace: "n", Name: name}, UID: "uid-" + name, ResourceVersion: version}
}

// TestPaceFollowsTheSink: it doubles while half of what waits is taken fast, and halves where that takes long.
func TestPaceFollowsTheSink(t *testing.T) {
	var p pace
	for range 20 {
		p.waited(time.Millisecond)
	}
	if p.limit() != mostAhead {
		t.Errorf("a fast sink is %d bytes behind, want %d", p.limit(), mostAhead)
	}
	p.waited((minWait + maxWait) / 2)
	if p.limit() != mostAhead {
		t.Errorf("%d bytes are ahead, want %d still", p.limit(), mostAhead)
	}
	for range 20 {
		p.waited(time.Second)
	}
	if p.limit() != leastAhead {
		t.Errorf("a slow sink is %d bytes behind, want %d", p.limit(), leastAhead)
	}
}

// stuck is a line whose sink takes nothing of a snapshot until it is let go.
type stuck struct {
	*recorder
	free chan struct{}
}

func (s *stuck) Pace(ctx context.Context, _ *change.Stream, _ string, _ int) (bool, error) {
	select {
	case <-s.free:
		return true, nil
	case <-ctx.Done():
		return true, context.Cause(ctx)
	}
}

// TestI3I4TheWatchOvertakesASnapshot whose sink is slow: what it tells meanwhile is not told again in an older form,
// what it tells to be gone does not come back, and nothing waits for the sink.
func TestI3I4TheWatchOvertakesASnapshot(t *testing.T) {
	server := script(t, 300)
	server.list = func(url.Values) (int, string) {
		return http.StatusOK, podList(100, "", "a 10", "b 20", "c 30", "d 40")
	}
	begun := make(chan struct{})
	server.watch = func(_ url.Values, w *watchWriter) {
		w.flush()
		<-begun
		w.frames("MODIFIED b 150", "DELETED c 160", "MODIFIED e 170", "BOOKMARK 180")
		w.hold()
	}
	r := newRecorder("a 10", "b 20", "c 30", "d 40", "e 50")
	line := &stuck{recorder: r, free: make(chan struct{})}
	s := server.startInto(line, r, at(100))
	s.Request(resync("lake")...)
	r.wait(t, "snapshot.begin 100 resync to lake")
	close(begun)
	r.until(t, "the watch to pass the snapshot", func() bool { return slices.Contains(r.lines, "bookmark 180") })
	close(line.free)
	lines := strings.Split(r.wait(t, "snapshot.end 100 resync to lake"), "\n")
	for _, unwanted := range []string{"sync b 20 to lake", "sync c 30 to lake", "replaced b 20", "replaced c 30", "deleted e 50 unseen"} {
		if slices.Contains(lines, unwanted) {
			t.Errorf("records are\n%s\nand %s was overtaken", strings.Join(lines, "\n"), unwanted)
		}
	}
	if !slices.Contains(lines, "sync a 10 to lake") || !slices.Contains(lines, "sync d 40 to lake") {
		t.Errorf("records are\n%s\nwant a and d", strings.Join(lines, "\n"))
	}
}

// TestI4APageIsComparedBesideOneWatch: after another one the server may have another history.
func TestI4APageIsComparedBesideOneWatch(t *testing.T) {
	server := script(t, 100)
	asked, reopened := make(chan struct{}), make(chan struct{})
	lists, watches := 0, 0
	server.list = func(url.Values) (int, string) {
		if lists++; lists == 1 {
			close(asked)
			<-reopened
			return http.StatusOK, podList(100, "", "other 90")
		}
		return http.StatusOK, podList(100, "", "a 10")
	}
	server.watch = func(_ url.Values, w *watchWriter) {
		if watches++; watches == 1 {
			w.flush()
			<-asked
			return
		}
		w.flush()
		close(reopened)
		w.hold()
	}
	r := newRecorder("a 10")
	server.start(r, at(100)).Request(resync("lake")...)
	want(t, "records", r.wait(t, "snapshot.end 100 resync to lake"),
		"snapshot.begin 100 resync to lake", "sync a 10 to lake", "snapshot.end 100 resync to lake")
}

// TestTheRateOfSnapshotsIsBounded over all streams, and not where there is no bound.
func TestTheRateOfSnapshotsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		shared := NewRate(64)
		for range 4 {
			if err := shared.wait(t.Context(), turnObjects); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 1500*time.Millisecond { // the first turn is free
			t.Errorf("128 objects took %s at 64 a second", took)
		}
		began = time.Now()
		if err := NewRate(0).wait(t.Context(), 1_000_000); err != nil || time.Since(began) != 0 {
			t.Errorf("without a bound it took %s, %v", time.Since(began), err)
		}
	})
}

// TestI6TooManyChangesBeginAnotherList: what a snapshot remembers is bounded.
func TestI6TooManyChangesBeginAnotherList(t *testing.T) {
	r := recent{}
	r.begin()
	for i := range maxRecent {
		r.note(named(change.Deleted, fmt.Sprint("p", i), "1"))
	}
	if r.isFull() {
		t.Error("it is full too early")
	}
	if r.note(named(change.Deleted, "one more", "1")); !r.isFull() {
		t.Error("it is never full")
	}
}
