package source

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// failed returns once the stream has failed for the reason.
func (r *recorder) failed(t *testing.T, why string) string {
	t.Helper()
	return r.until(t, "a failure for "+why, func() bool {
		return len(r.failures) > 0 && strings.Contains(r.failures[len(r.failures)-1], why)
	})
}

// TestI4VersionsThatSayNothingRefuseTheStream before anything is told of it: an update could not be told from what is
// known.
func TestI4VersionsThatSayNothingRefuseTheStream(t *testing.T) {
	for name, page := range map[string]string{
		"an empty list version":      `{"items":[],"metadata":{"resourceVersion":""}}`,
		"a list without a version":   `{"items":[],"metadata":{}}`,
		"a list version of 0":        `{"items":[],"metadata":{"resourceVersion":"0"}}`,
		"an opaque list version":     `{"items":[],"metadata":{"resourceVersion":"v1-abc"}}`,
		"an object without one":      `{"items":[{"metadata":{"name":"a"}}],"metadata":{"resourceVersion":"7"}}`,
		"an object of 0":             `{"items":[{"metadata":{"name":"a","resourceVersion":"0"}}],"metadata":{"resourceVersion":"7"}}`,
		"an object newer than lists": `{"items":[{"metadata":{"name":"a","resourceVersion":"8"}}],"metadata":{"resourceVersion":"7"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			server := script(t, 100)
			server.deny = func() (int, string) { return http.StatusOK, page }
			r := newRecorder()
			server.start(r, change.Position{})
			want(t, "records", r.failed(t, "take the resource out of the configuration"))
		})
	}
}

// TestI4TwoStatesAtOneVersionRefuseTheStream: the update is not told, and a gap says so.
func TestI4TwoStatesAtOneVersionRefuseTheStream(t *testing.T) {
	server := script(t, 200)
	server.watch = func(_ url.Values, w *watchWriter) {
		w.frames("MODIFIED a 150", "MODIFIED b 150", "MODIFIED a 150")
		fmt.Fprintln(w, strings.Replace(frameOf("MODIFIED a 150"), `"metadata"`, `"spec":{},"metadata"`, 1))
		w.frames("MODIFIED c 160")
		w.hold()
	}
	r := newRecorder("a 10")
	server.start(r, at(100))
	want(t, "records", r.failed(t, "two states of the object"), "updated a 150", "updated b 150", "gap 150 stale")
	want(t, "requests", server.asked(), "watch 100")
}

// TestI4AnObjectWithoutAVersionInAWatchRefusesTheStream with a gap.
func TestI4AnObjectWithoutAVersionInAWatchRefusesTheStream(t *testing.T) {
	server := script(t, 200)
	server.watch = func(_ url.Values, w *watchWriter) {
		w.frames("MODIFIED a 150", "MODIFIED b", "MODIFIED c 160")
		w.hold()
	}
	r := newRecorder("a 10")
	server.start(r, at(100))
	want(t, "records", r.failed(t, `has the resourceVersion ""`), "updated a 150", "gap 150 stale")
}

// TestI3VersionsAbove64BitsAreOrdered like any other.
func TestI3VersionsAbove64BitsAreOrdered(t *testing.T) {
	const digits = "1844674407370955161" // ten times as much is above 2^64
	server := script(t, 0)
	big := func(page string) string {
		return strings.ReplaceAll(page, `"resourceVersion":"`, `"resourceVersion":"`+digits)
	}
	server.list = func(url.Values) (int, string) { return http.StatusOK, big(podList(60, "", "a 10")) }
	server.answer = big
	watches := 0
	server.watch = func(_ url.Values, w *watchWriter) {
		if watches++; watches == 1 {
			w.behind("snapshot.end " + digits + "60 initial")
			w.frames("DELETED b "+digits+"70", "MODIFIED a "+digits+"71")
			w.cut()
		}
		w.frames("MODIFIED a "+digits+"71", "MODIFIED a "+digits+"80")
		w.hold()
	}
	server.version = func() int { return 60 + 20*min(1, watches) }
	r := newRecorder()
	server.start(r, change.Position{})
	want(t, "records", r.wait(t, "updated a "+digits+"80"), "snapshot.begin "+digits+"60 initial", "replaced a "+digits+"10", "snapshot.end "+digits+"60 initial",
		"deleted b "+digits+"70", "updated a "+digits+"71", "updated a "+digits+"80")
	want(t, "requests", server.asked(), "watch "+digits+"60, list "+digits+"60, watch "+digits+"70")
}

// TestI4AListOfAnotherVersionIsNone: what was changed in between would be lost.
func TestI4AListOfAnotherVersionIsNone(t *testing.T) {
	server := script(t, 300)
	lists := 0
	server.list = func(q url.Values) (int, string) {
		if lists++; lists == 1 {
			return http.StatusOK, podList(290, "", "a 250")
		}
		if q.Get("continue") == "" {
			return http.StatusOK, podList(300, "next", "a 250")
		}
		if lists == 3 {
			return http.StatusOK, podList(310, "", "b 260") // another version in the middle
		}
		return http.StatusOK, podList(300, "", "b 260")
	}
	r := newRecorder()
	server.start(r, change.Position{})
	want(t, "records", r.wait(t, "snapshot.end 300 initial"),
		"snapshot.begin 300 initial", "replaced a 250", "replaced b 260", "snapshot.end 300 initial")
}

// TestI4AServerThatNeverListsExactlyIsRefused.
func TestI4AServerThatNeverListsExactlyIsRefused(t *testing.T) {
	server := script(t, 300)
	server.list = func(url.Values) (int, string) { return http.StatusOK, podList(290, "", "a 250") }
	r := newRecorder()
	server.start(r, change.Position{})
	r.failed(t, "so the stream is refused")
}
