package replay

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"testing"
)

const template = `{"metadata":{"name":"__NAME__","uid":"__UID__","resourceVersion":"__RV__"}}`

// object is what the tests read of a list and of the object of a frame.
type object struct {
	Metadata struct {
		Name, UID, ResourceVersion string
		Annotations                map[string]string
	}
	Items []json.RawMessage
}

type frame struct {
	Type   string
	Object object
}

// start serves until the test ends.
func start(t *testing.T) Address {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	started, ended := make(chan Address, 1), make(chan error, 1)
	go func() {
		ended <- Serve(ctx, Spec{Template: template}, func(a Address) error { started <- a; return nil })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	select {
	case a := <-started:
		return a
	case err := <-ended:
		ended <- nil
		t.Fatalf("serve: %v", err)
	}
	return Address{}
}

func get(t *testing.T, a Address, protocol int, path string) io.Reader {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.CA)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: protocol == 2}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close(); transport.CloseIdleConnections() })
	if response.StatusCode != http.StatusOK || response.ProtoMajor != protocol {
		t.Fatalf("%s: %s over %s, want 200 over HTTP/%d", path, response.Status, response.Proto, protocol)
	}
	return response.Body
}

func TestListIsEmptyAndHasAVersion(t *testing.T) {
	a := start(t)
	var list object
	if err := json.NewDecoder(get(t, a, 1, a.WithEvents(5)+"/api/v1/pods?limit=1")).Decode(&list); err != nil {
		t.Fatal(err)
	}
	if list.Metadata.ResourceVersion != strconv.Itoa(firstVersion) || len(list.Items) != 0 {
		t.Errorf("the list is %+v", list)
	}
}

func TestWatchSendsRisingVersionsAndABookmark(t *testing.T) {
	a := start(t)
	const events = names + burst + 3
	for protocol := 1; protocol <= 2; protocol++ {
		body := get(t, a, protocol, a.WithEvents(events)+"/api/v1/pods?watch=true&resourceVersion=1")
		lines := bufio.NewScanner(body)
		seen := map[string]bool{}
		for i := 1; i <= events; i++ {
			f := next(t, lines)
			if want := strconv.Itoa(firstVersion + i); f.Type != "MODIFIED" || f.Object.Metadata.ResourceVersion != want {
				t.Fatalf("frame %d is %+v, want MODIFIED at %s", i, f, want)
			}
			seen[f.Object.Metadata.Name+f.Object.Metadata.UID] = true
		}
		if len(seen) != names {
			t.Errorf("%d objects, want %d", len(seen), names)
		}
		if f := next(t, lines); f.Type != "BOOKMARK" || f.Object.Metadata.ResourceVersion != strconv.Itoa(firstVersion+events) {
			t.Errorf("the last frame is %+v, want a bookmark", f)
		}
	}
}

func TestWatchContinuesAndEndsInitialEvents(t *testing.T) {
	a := start(t)
	from := strconv.Itoa(firstVersion + 7)
	lines := bufio.NewScanner(get(t, a, 1, a.WithEvents(8)+"/api/v1/pods?watch=true&sendInitialEvents=true&resourceVersion="+from))
	f := next(t, lines)
	if f.Type != "BOOKMARK" || f.Object.Metadata.ResourceVersion != from || f.Object.Metadata.Annotations["k8s.io/initial-events-end"] != "true" {
		t.Errorf("the first frame is %+v, want the end of the initial events", f)
	}
	if f := next(t, lines); f.Object.Metadata.ResourceVersion != strconv.Itoa(firstVersion+8) {
		t.Errorf("the watch continues with %+v", f)
	}
}

func next(t *testing.T, lines *bufio.Scanner) frame {
	t.Helper()
	var f frame
	if !lines.Scan() {
		t.Fatalf("the watch ends: %v", lines.Err())
	}
	if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
		t.Fatalf("frame %q: %v", lines.Bytes(), err)
	}
	return f
}
