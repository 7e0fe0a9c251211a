package source

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// withoutUpdates keeps back updates as ops do: but for those that may be the first that a sink hears of the object.
func withoutUpdates(rec *change.Record) {
	if rec.Op == change.Updated && !rec.Beside {
		rec.Filtered, rec.Object = true, nil
	}
}

// TestI4AnUpdateBesideASnapshotMayBeTheFirstOfTheObject: its list is older and says nothing of it any more, whether the
// snapshot is for all sinks or for a new one.
func TestI4AnUpdateBesideASnapshotMayBeTheFirstOfTheObject(t *testing.T) {
	const end = "snapshot.end 100 "
	for reason, first := range map[change.Reason]bool{change.Initial: true, change.NewSink: false} {
		r := newRecorder()
		saved := change.Position{}
		if !first {
			r, saved = newRecorder("a 10", "b 20"), at(100)
		}
		r.shape = withoutUpdates
		server := script(t, 100)
		server.watch = func(_ url.Values, w *watchWriter) {
			w.behind("snapshot.begin 100 " + string(reason) + map[bool]string{false: " to lake"}[first])
			w.frames("MODIFIED a 101", "BOOKMARK 101")
			w.behind(end + string(reason) + map[bool]string{false: " to lake"}[first])
			w.frames("MODIFIED a 102")
			w.hold()
		}
		server.list = func(url.Values) (int, string) {
			r.has(t.Context(), "updated a 101")
			return http.StatusOK, podList(100, "", "a 10", "b 20")
		}
		s := server.start(r, saved)
		if first {
			r.wait(t, "updated a 102")
			want(t, "records", toldLines(r), "updated a 101", "replaced b 20 last", "updated a 102 to nobody")
			continue
		}
		s.Request(change.Owed{Sink: "lake", Reason: reason})
		r.wait(t, "updated a 102")
		want(t, "records", toldLines(r), "updated a 101", "sync b 20 to lake last", "updated a 102 to nobody")
	}
}
