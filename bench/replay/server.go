// Package replay is an API server that has only Pods, and a history of them that it made up: as much of the Kubernetes
// API as a list, a watch and an informer need, over TLS, HTTP/2 and HTTP/1.1.
package replay

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
)

// Spec is what a server serves.
type Spec struct {
	// Template is a Pod on one line, with __NAME__, __UID__ and __RV__ to fill in.
	Template string
}

// Address is where a server is.
type Address struct {
	URL string
	CA  []byte // PEM
}

// WithEvents is the host for a client that is to be sent so many events.
func (a Address) WithEvents(n int) string { return a.URL + "/replay/" + strconv.Itoa(n) }

// Serve serves until ctx ends. It tells started where.
func Serve(ctx context.Context, spec Spec, started func(Address) error) error {
	frames, err := newRing(spec.Template)
	if err != nil {
		return err
	}
	certificate, ca, err := newCertificate()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{
		Handler:   &handler{frames},
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
		ErrorLog:  log.New(io.Discard, "", 0), // it tells of clients that hang up, which all of them do
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := started(Address{URL: "https://" + listener.Addr().String(), CA: ca}); err != nil {
		return err
	}
	if err := server.ServeTLS(listener, "", ""); err != http.ErrServerClosed {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// handler answers GET /replay/EVENTS/api/v1/pods.
type handler struct{ frames *ring }

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var events int
	if _, err := fmt.Sscanf(r.URL.Path, "/replay/%d/api/v1/pods", &events); err != nil || events < 0 {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if query := r.URL.Query(); query.Has("watch") {
		from, _ := strconv.Atoi(query.Get("resourceVersion")) // none is the oldest
		from = max(from, firstVersion)
		h.watch(w, r, watchRange{from: from, to: firstVersion + events, initial: query.Has("sendInitialEvents")})
		return
	}
	fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[]}`+"\n", firstVersion)
}

// watchRange is what one watch is sent: the versions after from, up to and with to.
type watchRange struct {
	from, to int
	initial  bool // the end of the initial events, of which there are none, comes first
}

// watch sends the events and a bookmark, and keeps the stream open until the client closes it.
func (h *handler) watch(w http.ResponseWriter, r *http.Request, span watchRange) {
	flush := http.NewResponseController(w).Flush
	if span.initial {
		writeBookmark(w, span.from, `"annotations":{"k8s.io/initial-events-end":"true"},`)
	}
	if flush() != nil || h.frames.clone().send(w, span.from, span.to) != nil {
		return // the client is gone
	}
	writeBookmark(w, max(span.from, span.to), "")
	if flush() == nil {
		<-r.Context().Done()
	}
}

func writeBookmark(w http.ResponseWriter, version int, annotations string) {
	fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{%s"resourceVersion":"%d"},`+
		`"spec":{"containers":null},"status":{}}}`+"\n", annotations, version)
}
