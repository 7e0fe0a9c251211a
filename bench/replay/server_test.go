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

const fixture = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"__NAME__","uid":"__UID__","resourceVersion":"__RV__"}}`

// object is what the tests read of a list, its items, and the object of a frame.
type object struct {
	Kind, APIVersion string
	Metadata         struct {
		Namespace, Name, UID, ResourceVersion, Continue string
		Annotations                                     map[string]string
		ManagedFields                                   []json.RawMessage
	}
	Items []object
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
		ended <- Serve(ctx, Spec{Template: fixture}, func(a Address) error { started <- a; return nil })
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

func list(t *testing.T, a Address, w World, path string) object {
	t.Helper()
	var list object
	if err := json.NewDecoder(get(t, a, 1, a.Host(w)+path)).Decode(&list); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestPagesAreOneSortedList reads lists of built-in and custom resources to their ends: every object once, in the order
// of the joined keys, with a version of its own, all at the version that was asked for.
func TestPagesAreOneSortedList(t *testing.T) {
	a := start(t)
	for _, path := range []string{"/api/v1/pods", "/apis/" + group + "/v1/widgets001"} {
		w := World{Objects: 1234, Kinds: 2, ObjectBytes: 1500}
		version := strconv.Itoa(w.firstVersion())
		var last, token string
		var count int
		for {
			query := "?limit=500&resourceVersionMatch=Exact&resourceVersion=" + version
			if token != "" {
				query = "?limit=500&continue=" + token
			}
			l := list(t, a, w, path+query)
			if l.Metadata.ResourceVersion != version {
				t.Fatalf("%s: a page is at %s, want %s", path, l.Metadata.ResourceVersion, version)
			}
			for _, item := range l.Items {
				key := item.Metadata.Namespace + "/" + item.Metadata.Name
				if key <= last || item.Metadata.ResourceVersion != strconv.Itoa(oldestVersion+count+1) || len(item.Metadata.ManagedFields) == 0 {
					t.Fatalf("%s: after %s comes %+v", path, last, item)
				}
				last = key
				count++
			}
			if token = l.Metadata.Continue; token == "" {
				break
			}
		}
		if count != w.Objects {
			t.Errorf("%s: %d objects, want %d", path, count, w.Objects)
		}
	}
}

func TestObjectsAreOfTheSizeAskedFor(t *testing.T) {
	for _, size := range []int{1536, 4 << 10, 512 << 10} {
		text := newTemplate(sized(size), 1).append(nil, 3, oldestVersion)
		if !json.Valid(text) || len(text) < size || len(text) > size+200 {
			t.Errorf("an object has %d bytes, want %d, valid: %v", len(text), size, json.Valid(text))
		}
	}
}

func TestWatchSendsRisingVersionsAndABookmark(t *testing.T) {
	a := start(t)
	w := World{Events: 512 + burst + 3}
	for protocol := 1; protocol <= 2; protocol++ {
		lines := bufio.NewScanner(get(t, a, protocol, a.Host(w)+"/api/v1/pods?watch=true&resourceVersion=1"))
		seen := map[string]bool{}
		for i := 1; i <= w.Events; i++ {
			f := next(t, lines)
			if want := strconv.Itoa(oldestVersion + i); f.Type != "MODIFIED" || f.Object.Metadata.ResourceVersion != want {
				t.Fatalf("frame %d is %+v, want MODIFIED at %s", i, f, want)
			}
			seen[f.Object.Metadata.Name+f.Object.Metadata.UID] = true
		}
		if len(seen) != w.names() {
			t.Errorf("%d objects, want %d", len(seen), w.names())
		}
		if f := next(t, lines); f.Type != "BOOKMARK" || f.Object.Metadata.ResourceVersion != strconv.Itoa(oldestVersion+w.Events) {
			t.Errorf("the last frame is %+v, want a bookmark", f)
		}
	}
	if l := list(t, a, w, "/api/v1/pods?limit=1"); l.Metadata.ResourceVersion != strconv.Itoa(oldestVersion+w.Events) {
		t.Errorf("the server stands at %s behind what it sent", l.Metadata.ResourceVersion)
	}
}

// TestHeldEventsWaitForRelease also counts what was asked.
func TestHeldEventsWaitForRelease(t *testing.T) {
	a := start(t)
	desk := NewDesk(a)
	w := World{Run: "held", Events: 1, Kinds: 1, Held: true}
	body := get(t, a, 1, a.Host(w)+"/apis/"+group+"/v1/widgets000?watch=true")
	list(t, a, w, "/api/v1/pods?limit=1")
	list(t, a, w, "/api/v1/pods?limit=500")
	counts, err := desk.Counts(t.Context(), w)
	if want := (Counts{Lists: 1, Probes: 1, Watches: 1}); err != nil || counts != want {
		t.Errorf("counted %+v, %v, want %+v", counts, err, want)
	}
	if err := desk.Release(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if f := next(t, bufio.NewScanner(body)); f.Object.Kind != "Widget000" || f.Object.APIVersion != group+"/v1" {
		t.Errorf("the event is %+v", f)
	}
	if others, err := desk.Counts(t.Context(), World{Run: "other"}); err != nil || others != (Counts{}) {
		t.Errorf("another world counts %+v, %v", others, err)
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
