package source

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// patient makes the Reflector wait longer than the test takes.
func patient(s *Stream) { s.retries = &wait.Backoff{Duration: time.Hour, Steps: 1} }

func TestI4AStreamGoesOnAtOnceWhenTheServerIsBack(t *testing.T) {
	server := script(t, 200)
	var refusals atomic.Int32
	server.prepare = patient
	server.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if refusals.Add(1) <= 3 {
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		var dialer net.Dialer
		return dialer.DialContext(ctx, network, address)
	}
	server.watch = func(_ url.Values, w *watchWriter) {
		w.frames("MODIFIED a 150")
		w.hold()
	}
	r := newRecorder("a 10")
	server.start(r, at(100))
	want(t, "records", r.wait(t, "updated a 150"), "updated a 150")
	if len(r.failures) != 1 {
		t.Errorf("told of %q, want one failure of an outage", r.failures)
	}
}

func TestI4APositionThatIsGoneIsReadBeyondAtOnce(t *testing.T) {
	server := script(t, 300)
	server.prepare = patient
	server.list = func(url.Values) (int, string) { return http.StatusOK, podList(300, "", "a 250") }
	server.watch = func(q url.Values, w *watchWriter) {
		if q.Get("resourceVersion") == "100" {
			w.frames("GONE")
			w.hold()
		}
		w.behind("snapshot.end 300 gone")
		w.frames("MODIFIED a 301")
		w.hold()
	}
	r := newRecorder("a 10")
	server.start(r, at(100))
	r.wait(t, "updated a 301")
}
