package source

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// gone is the script of a server that has forgotten the position, and lists the pods.
func gone(t *testing.T, r *recorder, pods ...string) *Stream {
	t.Helper()
	server := script(t, 300)
	server.list = func(url.Values) (int, string) { return http.StatusOK, podList(300, "", pods...) }
	saved := at(100)
	saved.Selector = "another" // so that it is compared
	return server.start(r, saved)
}

func toldLines(r *recorder) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.told, "\n")
}

// What a missed delete cannot say otherwise is how the object was. One that was made again has nothing before it.
func TestI4MissedChangesSayHowTheObjectWas(t *testing.T) {
	r := newRecorder("again 30", "changed 20", "gone 15", "same 10")
	r.keep("again 29", "changed 20", "gone 15", "same 10")
	server := script(t, 300)
	server.list = func(url.Values) (int, string) {
		return http.StatusOK, strings.Replace(podList(300, "", "again 40", "changed 25", "same 10"), "uid-again", "uid-later", 1)
	}
	saved := at(100)
	saved.Selector = "another"
	server.start(r, saved)
	r.wait(t, "snapshot.end 300 stale")
	want(t, "records", toldLines(r),
		"deleted again 30 after 29", "replaced again 40", "replaced changed 25 after 20", "deleted gone 15 after 15 last")
	if image := r.images["n/again"]; image.UID != "uid-later" || versionOf(image.Object) != "40" {
		t.Errorf("kept %+v", image)
	}
}

func TestWatchSaysHowTheObjectWas(t *testing.T) {
	server := script(t, 100)
	server.watch = func(_ url.Values, w *watchWriter) {
		w.frames("ADDED a 101", "MODIFIED a 102", "MODIFIED a 103", "DELETED a 104", "ADDED a 105")
		w.hold()
	}
	r := newRecorder()
	r.keep()
	server.start(r, at(100))
	r.await(t, 5)
	want(t, "records", toldLines(r), "added a 101", "updated a 102 after 101", "updated a 103 after 102", "deleted a 104 after 103", "added a 105")
}

// Objects that were delivered before they were kept are kept as soon as a list shows them, and nobody gets them for
// that.
func TestObjectsThatAreNotKeptYetAreKeptByTheNextList(t *testing.T) {
	r := newRecorder("a 10", "b 20", "hidden 30")
	r.keep("b 20")
	r.shape = func(rec *change.Record) {
		if rec.Key.Name == "hidden" {
			rec.Filtered, rec.Object = true, nil
		}
	}
	server := script(t, 300)
	server.list = func(url.Values) (int, string) { return http.StatusOK, podList(100, "", "a 10", "b 20", "hidden 30") }
	server.start(r, at(100)).Request(resync("lake")...)
	r.wait(t, "snapshot.end 100 resync to lake")
	want(t, "records", toldLines(r), "sync a 10 to nobody", "sync a 10 to lake", "sync b 20 to lake last", "sync hidden 30 to lake to nobody")
	if len(r.images) != 2 {
		t.Errorf("kept is %+v", r.images)
	}
	if r.objects["n/a"].ResourceVersion != "10" {
		t.Errorf("the inventory has %+v", r.objects["n/a"])
	}
}

func TestNothingIsKeptWhereNobodyAsks(t *testing.T) {
	r := newRecorder("gone 15")
	gone(t, r, "new 20")
	r.wait(t, "snapshot.end 300 stale")
	want(t, "records", toldLines(r), "replaced new 20", "deleted gone 15 last")
}
