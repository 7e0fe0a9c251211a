package source

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/kubecdc/kubecdc/internal/change"
)

// stuckLine is one whose sinks take nothing.
type stuckLine struct{ *recorder }

func (stuckLine) Pace(ctx context.Context, _ *change.Stream, _ string, _ int) (bool, error) {
	<-ctx.Done()
	return true, context.Cause(ctx)
}

// TestI6ASnapshotThatWaitsForItsSinkRemembersNoMoreThanItMay of what the watch tells meanwhile.
func TestI6ASnapshotThatWaitsForItsSinkRemembersNoMoreThanItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := newRecorder()
		s := NewStream(Config{Stream: pods(), Inventory: recorder, Saved: at(9), Observer: NopObserver()})
		s.line = stuckLine{recorder}
		r := s.newReading(nil)
		r.difference = &difference{out: &s.output, parts: []*part{{}}}
		s.recent.begin()
		for i := range maxRecent + 1 {
			s.recent.note(&change.Record{Op: change.Added, Key: change.Key{Name: strconv.Itoa(i)}, ResourceVersion: "1"})
		}
		ctx, stop := context.WithTimeout(t.Context(), 10*longestPace)
		defer stop()
		if err := r.awaitSinks(ctx); !errors.Is(err, errTooRecent) {
			t.Errorf("it waits on: %v", err)
		}
	})
}

// TestI6ASmallPageIsListedAgainWhereTooManyDeletesAreRemembered: none is forgotten otherwise, and the snapshot never
// ends.
func TestI6ASmallPageIsListedAgainWhereTooManyDeletesAreRemembered(t *testing.T) {
	server, filled := script(t, 100), false
	var stream *Stream
	started := make(chan struct{})
	server.list = func(url.Values) (int, string) {
		<-started
		stream.turns.take()
		defer stream.turns.give()
		for i := 0; i <= maxRecent && !filled; i++ {
			key := change.Key{Namespace: "n", Name: "z" + strconv.Itoa(i)}
			stream.recent.note(&change.Record{Op: change.Deleted, Key: key, ResourceVersion: "100"})
		}
		filled = true
		return http.StatusOK, podList(100, "", "a 10")
	}
	server.watch = func(_ url.Values, w *watchWriter) { w.hold() }
	r := newRecorder("a 10")
	stream = server.start(r, at(100))
	close(started)
	stream.Request(change.Owed{Sink: "lake", Reason: change.Requested})
	want(t, "records", r.wait(t, "snapshot.end 100 requested to lake"), "snapshot.begin 100 requested to lake",
		"sync a 10 to lake", "snapshot.end 100 requested to lake")
}
