package source

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// quietServer has no bookmarks, and forgets what is below 200 as soon as a watch has ended.
func quietServer(t *testing.T, end func(w *watchWriter), items ...string) *apiServer {
	server := script(t, 200)
	server.prepare = func(s *Stream) { s.silence.least = 0 }
	server.list = func(url.Values) (int, string) { return http.StatusOK, podList(205, "", items...) }
	watches := 0
	server.watch = func(q url.Values, w *watchWriter) {
		switch watches++; {
		case watches == 1:
			end(w)
		case q.Get("resourceVersion") == "100":
			w.frames("GONE")
		default:
			w.frames("MODIFIED a 210")
			w.hold()
		}
	}
	return server
}

// TestI4AQuietStreamWithoutBookmarksIsNoGap, as that of Events, which the API server forgets after some minutes.
func TestI4AQuietStreamWithoutBookmarksIsNoGap(t *testing.T) {
	server := quietServer(t, func(w *watchWriter) { w.flush() }, "a 10", "b 20")
	r := newRecorder("a 10", "b 20")
	server.start(r, at(100))
	want(t, "records", r.wait(t, "updated a 210"), "bookmark 200", "updated a 210")
	want(t, "requests", server.asked(), "watch 100, list, watch 200")
}

// TestI4SilenceAloneMovesNoPosition: where the list has something else, where the watch broke, or where it brought
// something, the server may have more to tell.
func TestI4SilenceAloneMovesNoPosition(t *testing.T) {
	silent := func(w *watchWriter) { w.flush() }
	for name, c := range map[string]struct {
		end   func(w *watchWriter)
		items []string
		asked string
	}{
		"an update":      {silent, []string{"a 10", "b 150"}, "watch 100, list, watch 100"},
		"a creation":     {silent, []string{"a 10", "b 20", "c 150"}, "watch 100, list, watch 100"},
		"a delete":       {silent, []string{"a 10"}, "watch 100, list, watch 100"},
		"another object": {silent, []string{"a 10", "ba 20"}, "watch 100, list, watch 100"},
		"a broken watch": {(*watchWriter).cut, []string{"a 10", "b 20"}, "watch 100, watch 100"},
	} {
		t.Run(name, func(t *testing.T) {
			server := quietServer(t, c.end, c.items...)
			began := make(chan string, 1)
			next := server.watch
			first := true
			server.watch = func(q url.Values, w *watchWriter) {
				if !first {
					began <- server.asked()
					w.hold()
					return
				}
				first = false
				next(q, w)
			}
			server.start(newRecorder("a 10", "b 20"), at(100))
			want(t, "requests", <-began, c.asked)
		})
	}
}

// TestI4AWatchWasNoLongerSilentThanItLived: its end may wait for a snapshot that has the turn.
func TestI4AWatchWasNoLongerSilentThanItLived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStream(Config{Stream: pods(), Observer: NopObserver(), Inventory: newRecorder()})
		body := io.NopCloser(strings.NewReader(""))
		var silent time.Duration
		d := &decoder{ctx: t.Context(), stream: s, body: body, frames: frame.NewReader(body, s.origin.collection.options()), number: s.turns.opened(), began: time.Now()}
		d.ended = func(_ int, _ bool, took time.Duration) { silent = took }
		time.Sleep(time.Second)
		s.turns.take()
		go func() { _, _, _ = d.Decode() }()
		time.Sleep(2 * minSilence)
		s.turns.give()
		synctest.Wait()
		if d.end(); silent != time.Second || !d.orderly {
			t.Errorf("the watch was silent for %s, want 1s, and that its end was orderly: %t", silent, d.orderly)
		}
	})
}

// TestOnlyWatchesThatMayHaveNoBookmarksAreShort, and one that was silent for a moment proves nothing.
func TestOnlyWatchesThatMayHaveNoBookmarksAreShort(t *testing.T) {
	s := NewStream(Config{Stream: pods(), Observer: NopObserver(), Inventory: newRecorder()})
	asked := int64(600)
	if got := s.silence.limit(&asked); *got != 200 {
		t.Errorf("a watch takes %d s, want 200", *got)
	}
	s.silence.bookmarked = true
	if got := s.silence.limit(&asked); *got != 600 || s.silence.limit(nil) != nil {
		t.Errorf("a watch with bookmarks takes %d s, want 600", *got)
	}
	for _, c := range []struct {
		silent bool
		took   time.Duration
		want   string
	}{{true, minSilence, "7"}, {true, minSilence - 1, ""}, {false, time.Hour, ""}} {
		if s.silence.note(c.silent, c.took, "7"); s.silence.upTo != c.want {
			t.Errorf("%+v: silent up to %q", c, s.silence.upTo)
		}
	}
}
