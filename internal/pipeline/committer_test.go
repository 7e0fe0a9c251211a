package pipeline

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/line"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// TestI5BookmarksAreSavedTogether, two seconds after the first of them, or with the next record, or when a reconcile
// drains the line.
func TestI5BookmarksAreSavedTogether(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		store, err := checkpoint.Open(t.Context(), dir, checkpoint.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var saved []string
		start, observer := time.Now(), NopObserver()
		observer.Committed = func(batch []*change.Record, _ map[string]sink.Mark, _ time.Duration) {
			saved = append(saved, fmt.Sprintf("%d after %v", len(batch), time.Since(start)))
		}
		ctx, stop := context.WithCancel(t.Context())
		c, ended := &committer{line: line.New(nil, line.Options{}), store: store, observer: observer, attempt: store.Commit}, make(chan error)
		go func() { ended <- c.run(ctx) }()
		push := func(stream change.Stream, op change.Op, version string) {
			rec := &change.Record{Stream: &stream, Op: op, Filtered: op != change.Bookmark, Position: change.Position{ResourceVersion: version, Complete: true}}
			if err := c.line.Push(ctx, rec); err != nil {
				t.Fatal(err)
			}
		}
		push(pods(), change.Bookmark, "5")
		time.Sleep(time.Second)
		push(services(), change.Bookmark, "6")
		time.Sleep(9 * time.Second)
		push(pods(), change.Bookmark, "7")
		if err := c.line.Drain(ctx, pods()); err != nil {
			t.Fatal(err)
		}
		push(pods(), change.Bookmark, "8")
		time.Sleep(time.Second)
		push(services(), change.Updated, "9")
		time.Sleep(9 * time.Second)
		push(pods(), change.Bookmark, "10")
		time.Sleep(3 * time.Second)
		push(pods(), change.Bookmark, "11")
		synctest.Wait()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if got, want := strings.Join(saved, ", "), "2 after 2s, 1 after 10s, 2 after 11s, 1 after 22s, 1 after 23s"; got != want {
			t.Errorf("saved %s, want %s", got, want)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
}
