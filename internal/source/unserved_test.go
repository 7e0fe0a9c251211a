package source

import (
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
)

// TestAResourceThatOneServerDoesNotServeIsAskedForAtAnother: while a connection lives, all requests of HTTP/2 go to one
// server.
func TestAResourceThatOneServerDoesNotServeIsAskedForAtAnother(t *testing.T) {
	a := script(t, 100)
	var others atomic.Int32
	a.deny = func() (int, string) {
		if others.Load() == 0 {
			return http.StatusNotFound, `{"kind":"Status","status":"Failure","message":"the server could not find the requested resource","reason":"NotFound","code":404}`
		}
		return 0, ""
	}
	a.live = func() { others.Add(1) }
	r := newRecorder()
	a.watch = func(_ url.Values, w *watchWriter) {
		w.frames("ADDED a 91")
		w.hold()
	}
	a.start(r, at(90))
	want(t, "records", r.wait(t, "added a 91"), "added a 91")
}
