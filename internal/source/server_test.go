package source

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/internal/change"
)

// apiServer answers as a script says. Lists and watches are asked one at a time.
type apiServer struct {
	t *testing.T
	// version is what a list of one object answers, where the server stands.
	version func() int
	// uid is that of namespace kube-system, "" for that of the tests.
	uid func() string
	// live, where set, is told that the server is asked whether it lives.
	live func()
	// servers is how many identity Leases there are; 0 is one.
	servers int
	// look answers a list of one object by name.
	look func(q url.Values) (status int, body string)
	// deny answers a request instead, where its status is not 0.
	deny func() (status int, body string)
	// prepare, where set, changes the stream before it runs.
	prepare func(*Stream)
	// http2 says that this is spoken.
	http2 bool
	// dial, where set, connects to the server.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	// cache answers a list of one object that waits for the server's cache, where its status is not 0.
	cache func() (status int, body string)
	// answer, where set, changes a list of one object.
	answer func(page string) string
	// list answers a list of more than one.
	list func(q url.Values) (status int, body string)
	// watch writes frames; the watch ends when it returns.
	watch func(q url.Values, w *watchWriter)

	told     *recorder // what the stream tells
	mu       sync.Mutex
	requests []string
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.URL.Path == "/api/v1/namespaces/kube-system" {
		uid := "epoch-1"
		if a.uid != nil {
			uid = a.uid()
		}
		fmt.Fprintf(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"%s"}}`, uid)
		return
	}
	if strings.HasSuffix(request.URL.Path, "/namespaces/kube-system/leases") {
		leases := strings.Repeat(`,{"metadata":{"name":"apiserver-x"}}`, max(a.servers, 1))
		fmt.Fprintf(w, `{"kind":"LeaseList","apiVersion":"coordination.k8s.io/v1","metadata":{},"items":[%s]}`, leases[1:])
		return
	}
	if request.URL.Path == "/livez" {
		if a.live != nil {
			a.live()
		}
		return
	}
	q := request.URL.Query()
	if a.deny != nil {
		if status, body := a.deny(); status != 0 {
			a.note("denied")
			w.WriteHeader(status)
			fmt.Fprint(w, body)
			return
		}
	}
	if q.Get("watch") == "true" {
		a.note("watch " + q.Get("resourceVersion"))
		a.watch(q, &watchWriter{w, request.Context(), a.told})
		return
	}
	if name, found := strings.CutPrefix(q.Get("fieldSelector"), "metadata.name="); found {
		status, body := http.StatusGone, expired()
		if a.look != nil {
			a.note("look " + strings.TrimPrefix(request.URL.Path, "/api/v1/") + " " + name + " " + q.Get("resourceVersion"))
			status, body = a.look(q)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
		return
	}
	if status, body := a.asCache(q); status != 0 {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
		return
	}
	if q.Get("limit") == "1" {
		page := podList(a.version(), "")
		if a.answer != nil {
			page = a.answer(page)
		}
		fmt.Fprint(w, page)
		return
	}
	a.note(strings.TrimSpace("list " + q.Get("resourceVersion") + " " + q.Get("continue")))
	status, body := a.list(q)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprint(w, body)
}

func (a *apiServer) asCache(q url.Values) (status int, body string) {
	if a.cache == nil || q.Get("fieldSelector") != "metadata.name!=." {
		return 0, ""
	}
	return a.cache()
}

func (a *apiServer) note(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, text)
}

func (a *apiServer) asked() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.requests, ", ")
}

// watchWriter is the answer to a watch.
type watchWriter struct {
	http.ResponseWriter
	ctx  context.Context
	told *recorder
}

// after returns when the line was told, or when the client ends the watch.
func (w *watchWriter) behind(line string) {
	w.flush()
	w.told.has(w.ctx, line)
}

// frames sends the frames, each "TYPE name version", and returns when they are out.
func (w *watchWriter) frames(frames ...string) {
	for _, f := range frames {
		fmt.Fprintf(w, "%s\n", frameOf(f))
	}
	w.flush()
}

func (w *watchWriter) flush() { w.ResponseWriter.(http.Flusher).Flush() }

// hold keeps the watch open until the client ends it.
func (w *watchWriter) hold() { w.flush(); <-w.ctx.Done() }

// cut breaks the connection.
func (w *watchWriter) cut() { w.flush(); panic(http.ErrAbortHandler) }

func frameOf(text string) string {
	kind, rest, _ := strings.Cut(text, " ")
	name, version, _ := strings.Cut(rest, " ")
	switch kind {
	case "BOOKMARK":
		return fmt.Sprintf(`{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"%s"},"spec":{"containers":null},"status":{}}}`, name)
	case "GONE":
		return `{"type":"ERROR","object":` + strings.Replace(expired(), "2737", cmp.Or(name, "2737"), 1) + `}`
	}
	return fmt.Sprintf(`{"type":"%s","object":%s}`, kind, podJSON(name, version))
}

func podJSON(name, version string) string {
	return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"%s","namespace":"n","uid":"uid-%s","resourceVersion":"%s"}}`, name, name, version)
}

// podList is a page; its pods are "name version".
func podList(version int, token string, pods ...string) string {
	items := make([]string, len(pods))
	for i, pod := range pods {
		name, rv, _ := strings.Cut(pod, " ")
		items[i] = strings.Replace(podJSON(name, rv), `"kind":"Pod","apiVersion":"v1",`, "", 1)
	}
	return fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"%d","continue":"%s"},"items":[%s]}`,
		version, token, strings.Join(items, ","))
}

func expired() string {
	return `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 1 (2737)","reason":"Expired","code":410}`
}

// start runs a stream against the scripted server until the test ends.
func (a *apiServer) start(r *recorder, saved change.Position) *Stream {
	a.t.Helper()
	return a.startInto(r, r, saved)
}

// startInto is start with another line than the recorder.
func (a *apiServer) startInto(line Line, r *recorder, saved change.Position) *Stream {
	a.t.Helper()
	a.told = r
	server := a.serve()
	streams := 1
	if a.http2 {
		streams += maxHTTP1Streams
	}
	client, err := NewClient(&rest.Config{Host: server.URL, Dial: a.dial, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, streams)
	if err != nil {
		a.t.Fatal(err)
	}
	observer := NopObserver()
	observer.Corrected = r.corrected
	observer.Failed = func(_ change.Stream, err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.failures = append(r.failures, err.Error())
		r.changed.Broadcast()
	}
	config := Config{Client: client, Stream: pods(), Inventory: r, Saved: saved, ClusterUID: "epoch-1", Meet: r.meet, Shape: r.shape, Observer: observer}
	if r.images != nil {
		config.Images = r
	}
	s := NewStream(config)
	if a.prepare != nil {
		a.prepare(s)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(a.t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Run(ctx, line); err != nil {
			a.t.Error(err)
		}
	}()
	a.t.Cleanup(func() {
		cancel()
		<-done
		client.rest.Client.CloseIdleConnections()
	})
	return s
}

// serve makes the server listen until the test ends.
func (a *apiServer) serve() *httptest.Server {
	server := httptest.NewUnstartedServer(a)
	a.t.Cleanup(server.Close)
	if server.EnableHTTP2 = a.http2; a.http2 {
		server.StartTLS()
	} else {
		server.Start()
	}
	return server
}

// at is a complete position of the test's epoch.
func at(version int) change.Position {
	return change.Position{ResourceVersion: strconv.Itoa(version), Complete: true, Epoch: "epoch-1"}
}
