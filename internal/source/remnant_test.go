package source

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestI4OnlyWhatIsCertainToBeThereForAWhileIsGoneOnWith: else what comes next is a gap, too.
func TestI4OnlyWhatIsCertainToBeThereForAWhileIsGoneOnWith(t *testing.T) {
	tooOld := errors.New("too old resource version: 100 (150)")
	for what, c := range map[string]struct {
		took, since   time.Duration // of the watch that worked, and since its end
		gone          error
		position, now string
		want          string
	}{
		"a server has just started": {time.Second, 59 * time.Second, tooOld, "100", "200", "150"},
		"nothing happened since":    {time.Second, 0, tooOld, "150", "150", "150"},
		"the watch ended long ago":  {time.Second, 61 * time.Second, tooOld, "100", "200", "200"},
		"the watch never worked":    {time.Millisecond, 0, tooOld, "100", "200", "200"},
		"the server does not say":   {time.Second, 0, errors.New("The resourceVersion for the provided watch is too old."), "100", "200", "200"},
		"it is before the position": {time.Second, 0, tooOld, "151", "200", "200"},
		"it is of another server's": {time.Second, 0, tooOld, "100", "149", "149"},
		"it is no number":           {time.Second, 0, errors.New("too old resource version: 100 (x)"), "100", "200", "200"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var r remnant
			r.ended(c.took)
			r.ended(time.Millisecond) // that of the error
			time.Sleep(c.since)
			r.gone(tooOld)
			r.gone(c.gone)
			for i, want := range []string{c.want, c.now} { // once
				if got := r.begin(c.position, c.now); got != want {
					t.Errorf("%s: the %d. time it begins at %s, want %s", what, i+1, got, want)
				}
				r.gone(tooOld)
			}
		})
	}
}

// TestI4BehindAStartOfTheServerNothingIsMissingThatItHas: the gap ends where what the server has begins, and what it
// has comes change by change. A server that has forgotten that, too, is gone on with where it stands.
func TestI4BehindAStartOfTheServerNothingIsMissingThatItHas(t *testing.T) {
	for _, again := range []bool{false, true} {
		server, r := script(t, 300), newRecorder("a 10", "b 20")
		server.prepare = func(s *Stream) { s.remnant.ended(time.Minute) }
		server.list = func(q url.Values) (int, string) {
			if q.Get("resourceVersion") == "300" {
				return http.StatusOK, podList(300, "", "a 160")
			}
			if again { // nothing of it comes before it is overtaken
				r.has(t.Context(), "gap 300 gone")
			}
			return http.StatusOK, podList(150, "", "a 150", "b 20")
		}
		server.watch = func(q url.Values, w *watchWriter) {
			switch version := q.Get("resourceVersion"); {
			case version == "100", again && version == "150":
				w.frames("GONE 150")
			case version == "150":
				w.behind("snapshot.begin 150 gone")
				w.frames("MODIFIED a 155", "MODIFIED a 160", "DELETED b 170")
				w.hold()
			default:
				w.hold()
			}
		}
		server.start(r, at(100))
		if again {
			want(t, "records", r.wait(t, "snapshot.end 300 gone"), "gap 150 gone", "snapshot.begin 150 gone",
				"gap 300 gone", "snapshot.begin 300 gone", "replaced a 160", "deleted b 20 unseen", "snapshot.end 300 gone")
			continue
		}
		for _, line := range []string{
			"gap 150 gone", "updated a 155", "updated a 160", "deleted b 170", "snapshot.end 150 gone",
		} {
			r.until(t, line, func() bool { return slices.Contains(r.lines, line) })
		}
	}
}
