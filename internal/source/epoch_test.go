package source

import (
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Another cluster is behind the address while the exporter runs, and stands further on than the old one did.
func TestI4AnotherClusterBehindTheAddressIsAnEpoch(t *testing.T) {
	server := script(t, 300)
	var moved atomic.Bool
	server.uid = func() string {
		if moved.Load() {
			return "epoch-2"
		}
		return "epoch-1"
	}
	server.list = func(url.Values) (int, string) { return http.StatusOK, podList(300, "", "theirs 40") }
	server.watch = func(q url.Values, w *watchWriter) {
		if moved.Swap(true) {
			w.frames("MODIFIED theirs 301")
			w.hold()
		}
		w.frames("MODIFIED ours 101")
		w.cut()
	}
	r := newRecorder("ours 90")
	server.start(r, at(100))
	want(t, "records", r.wait(t, "updated theirs 301"),
		"updated ours 101", "gap 300 epoch", "snapshot.begin 300 epoch", "replaced theirs 40", "deleted ours 101 unseen", "snapshot.end 300 epoch",
		"updated theirs 301")
	if at := r.position.Epoch; change.ClusterOf(at) != "epoch-2" || r.epochs != "epoch-1 "+at {
		t.Errorf("position is of %s and records are of %s", at, r.epochs)
	}
	if r.met != "epoch-2 behind 1 " {
		t.Errorf("the clusters that were noted are %q, want the new one before its gap", r.met)
	}
}

// An etcd that was restored gives an object a version that it had before, and another body. Nothing that the inventory
// has proves what a sink has, and no id is one of the history before.
func TestI4EpochTrustsNoVersion(t *testing.T) {
	server := script(t, 90)
	server.list = func(url.Values) (int, string) { return http.StatusOK, podList(90, "", "newer 80", "same 40") }
	server.watch = func(_ url.Values, w *watchWriter) {
		w.frames("MODIFIED same 91")
		w.hold()
	}
	r := newRecorder("newer 70", "same 40", "gone 60")
	server.start(r, at(100))
	want(t, "records", r.wait(t, "updated same 91"),
		"gap 90 epoch", "snapshot.begin 90 epoch", "replaced newer 80", "replaced same 40", "deleted gone 60 unseen", "snapshot.end 90 epoch",
		"updated same 91")
	if at := r.position.Epoch; at == "epoch-1" || change.ClusterOf(at) != "epoch-1" || r.epochs != at {
		t.Errorf("position is of %s and records are of %s, want another history of epoch-1", at, r.epochs)
	}
	if len(r.drift) > 0 {
		t.Errorf("another history is told as drift: %q", r.drift)
	}
}

// The next life goes on in the history that was found, and its ids are those of the life before.
func TestI8HistoryKeepsItsNameOverARestart(t *testing.T) {
	server := script(t, 300)
	server.watch = func(_ url.Values, w *watchWriter) {
		w.frames("MODIFIED a 301")
		w.hold()
	}
	r := newRecorder("a 90")
	saved := at(100)
	saved.Epoch = change.NewEpoch("epoch-1", 5)
	server.start(r, saved)
	want(t, "records", r.wait(t, "updated a 301"), "updated a 301")
	if r.epochs != saved.Epoch {
		t.Errorf("records are of %s, want %s", r.epochs, saved.Epoch)
	}
}

// An exact list of the old cluster's position proves nothing in the new one: the epoch comes first.
func TestI4SnapshotThatIsOwedWaitsForTheEpoch(t *testing.T) {
	server := script(t, 300)
	server.uid = func() string { return "epoch-2" }
	server.list = func(url.Values) (int, string) { return http.StatusOK, podList(300, "", "theirs 40") }
	r := newRecorder("ours 90")
	server.start(r, at(100)).Request(change.Owed{Sink: "lake", Reason: change.Lost})
	want(t, "records", r.wait(t, "snapshot.end 300 lost to lake"),
		"gap 300 epoch", "snapshot.begin 300 epoch", "replaced theirs 40", "deleted ours 90 unseen", "snapshot.end 300 epoch",
		"gap 300 lost to lake", "snapshot.begin 300 lost to lake", "sync theirs 40 to lake", "snapshot.end 300 lost to lake")
	if len(r.drift) > 0 {
		t.Errorf("another cluster is told as drift: %q", r.drift)
	}
}

// denied answers the first requests of a restarted watch with the status, as a server does whose RBAC was changed, or
// whose CRD was deleted.
func denied(t *testing.T, status int, body string, then func(q url.Values, w *watchWriter)) *apiServer {
	server := script(t, 300)
	var watches, refusals atomic.Int32
	server.watch = func(q url.Values, w *watchWriter) {
		if watches.Add(1) == 1 {
			w.frames("MODIFIED a 110")
			return
		}
		then(q, w)
	}
	server.deny = func() (int, string) {
		if watches.Load() == 1 && refusals.Add(1) <= 3 {
			return status, body
		}
		return 0, ""
	}
	return server
}

const forbidden = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"pods is forbidden","reason":"Forbidden","code":403}`

func TestI4AccessThatIsGivenBackGoesOnWithoutALoss(t *testing.T) {
	server := denied(t, http.StatusForbidden, forbidden, func(_ url.Values, w *watchWriter) {
		w.frames("DELETED a 150", "ADDED b 151")
		w.hold()
	})
	r := newRecorder("a 10")
	server.start(r, at(100))
	want(t, "records", r.wait(t, "added b 151"), "updated a 110", "deleted a 150", "added b 151")
	if failed := strings.Join(r.failures, "\n"); !strings.Contains(failed, "pods is forbidden") {
		t.Errorf("failures are %q, want the refusal", failed)
	}
	if asked := server.asked(); strings.Count(asked, "denied") != 3 || strings.Contains(asked, "list") || !strings.HasSuffix(asked, "watch 109") {
		t.Errorf("requests are %s, want three refusals and then the watch, without a list", asked)
	}
}

func TestI4AccessThatIsGivenBackTooLateIsAGapAndTheDifference(t *testing.T) {
	server := denied(t, http.StatusForbidden, forbidden, func(q url.Values, w *watchWriter) {
		if q.Get("resourceVersion") == "109" {
			w.frames("GONE")
			return
		}
		w.behind("snapshot.end 300 gone")
		w.frames("MODIFIED b 301")
		w.hold()
	})
	server.list = func(url.Values) (int, string) { return http.StatusOK, podList(300, "", "b 200", "same 20") }
	r := newRecorder("a 10", "same 20")
	server.start(r, at(100))
	want(t, "records", r.wait(t, "updated b 301"),
		"updated a 110", "gap 300 gone", "snapshot.begin 300 gone", "replaced b 200", "deleted a 110 unseen", "snapshot.end 300 gone", "updated b 301")
}

// The CRD is deleted: its objects' deletes come, the watch ends, and its path is not found. Then both are made again.
func TestI4ResourceThatIsMadeAgainEmitsTheDifference(t *testing.T) {
	server := script(t, 300)
	var watches, refusals atomic.Int32
	server.watch = func(q url.Values, w *watchWriter) {
		switch {
		case watches.Add(1) == 1:
			w.frames("DELETED a 110", "DELETED b 111")
		case q.Get("resourceVersion") == "110":
			w.frames("GONE") // the new CRD's cache begins later
		default:
			w.behind("snapshot.end 300 gone")
			w.frames("MODIFIED a 301")
			w.hold()
		}
	}
	server.deny = func() (int, string) {
		if watches.Load() == 1 && refusals.Add(1) <= 3 {
			return http.StatusNotFound, "404 page not found\n"
		}
		return 0, ""
	}
	server.list = func(url.Values) (int, string) {
		return http.StatusOK, strings.Replace(podList(300, "", "a 290"), "uid-a", "uid-a2", 1)
	}
	r := newRecorder("a 10", "b 20")
	server.start(r, at(100))
	want(t, "records", r.wait(t, "updated a 301"),
		"deleted a 110", "deleted b 111", "gap 300 gone", "snapshot.begin 300 gone", "replaced a 290", "snapshot.end 300 gone", "updated a 301")
}
