// Package replay is an API server of worlds that are made up: Pods and custom resources, any number of them, with lists
// in pages, watches, bookmarks and discovery, as much of the Kubernetes API as an informer or the exporter needs, over
// TLS, HTTP/2 and HTTP/1.1. It makes its answers while it writes them, so that a million objects cost it no memory.
package replay

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
)

// Spec is what a server serves.
type Spec struct {
	// Template is a Pod on one line, with __NAME__, __UID__ and __RV__ to fill in: the object of a World that says
	// nothing of its objects' size.
	Template string
}

// Serve serves until ctx ends. It tells started where.
func Serve(ctx context.Context, spec Spec, started func(Address) error) error {
	certificate, ca, err := newCertificate()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{
		Handler:   &handler{spec: spec, sessions: map[string]*session{}},
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

// handler answers GET /WORLD/PATH.
type handler struct {
	spec Spec

	mu       sync.Mutex // guards the following
	sessions map[string]*session
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	world, path, err := parseWorld(r.URL.Path)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	h.session(world).serve(w, r, path)
}

// session is the world's, made when it is named first.
func (h *handler) session(world World) *session {
	h.mu.Lock()
	defer h.mu.Unlock()
	name := world.String()
	if h.sessions[name] == nil {
		h.sessions[name] = newSession(world, h.spec.Template)
	}
	return h.sessions[name]
}
