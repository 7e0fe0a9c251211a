package source

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/internal/change"
)

// scriptedDiscovery is an API server that knows aggregated discovery.
type scriptedDiscovery struct {
	etag      string
	fresh     string         // of gears.example.com
	status    map[string]int // by path
	sent      int            // documents
	confirmed int            // that they have not changed
}

func (s *scriptedDiscovery) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if status := s.status[request.URL.Path]; status != 0 {
		w.WriteHeader(status)
		return
	}
	var items string
	switch request.URL.Path {
	case "/api":
		items = `{"metadata":{"name":""},"versions":[{"version":"v1","freshness":"Current","resources":[` + s.resource("pods", "Pod") + `]}]}`
	case "/apis":
		items = `{"metadata":{"name":"example.com"},"versions":[{"version":"v1","freshness":"` + s.fresh + `","resources":[` + s.resource("gears", "Gear") + `]}]}`
	default:
		fmt.Fprint(w, "ok")
		return
	}
	w.Header().Set("ETag", s.etag)
	if request.Header.Get("If-None-Match") == s.etag {
		s.confirmed++
		w.WriteHeader(http.StatusNotModified)
		return
	}
	s.sent++
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	fmt.Fprintf(w, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[%s]}`, items)
}

func (s *scriptedDiscovery) resource(name, kind string) string {
	return fmt.Sprintf(`{"resource":"%s","responseKind":{"group":"","version":"","kind":"%s"},"scope":"Namespaced","singularResource":"","verbs":["list","watch"]}`, name, kind)
}

func (s *scriptedDiscovery) start(t *testing.T) *Discovery {
	t.Helper()
	server := httptest.NewServer(s)
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
	})
	d, err := NewDiscovery(&rest.Config{Host: server.URL, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDiscoveryThatHasNotChangedIsNotSentAgain, and one that has is.
func TestDiscoveryThatHasNotChangedIsNotSentAgain(t *testing.T) {
	s := &scriptedDiscovery{etag: `"1"`, fresh: "Current"}
	d := s.start(t)
	for range 3 {
		c, err := d.Read(t.Context())
		if err != nil || !c.Serves(gears()) {
			t.Fatalf("%+v, %v", c, err)
		}
	}
	if s.sent != 2 || s.confirmed != 4 {
		t.Errorf("sent %d documents and confirmed %d, want 2 and 4", s.sent, s.confirmed)
	}
	s.etag, s.fresh = `"2"`, "Stale"
	c, err := d.Read(t.Context())
	if err != nil || c.Serves(gears()) || c.Tells("example.com") || !c.Tells("") {
		t.Errorf("a group that is down: serves %t, tells %t, %v", c.Serves(gears()), c.Tells("example.com"), err)
	}
}

func gears() change.Resource {
	return change.Resource{Group: "example.com", Version: "v1", Name: "gears", Kind: "Gear"}
}

func TestI4DiscoveryThatFailsTellsNothing(t *testing.T) {
	s := &scriptedDiscovery{etag: `"1"`, fresh: "Current", status: map[string]int{"/apis": 503, "/api": 503}}
	if c, err := s.start(t).Read(t.Context()); err == nil {
		t.Errorf("a catalog %+v of an API server that does not answer", c)
	}
}
