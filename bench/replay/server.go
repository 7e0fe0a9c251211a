// Package replay is an API server of worlds that are made up: Pods and custom resources, any number of them, with lists
// in pages, watches, bookmarks and discovery, as much of the Kubernetes API as an informer or the exporter needs, over
// TLS, HTTP/2 and HTTP/1.1. It makes its answers while it writes them, so that a million objects cost it no memory.
package replay

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
)

// Serve serves until ctx ends. It tells started where.
func Serve(ctx context.Context, started func(Address) error) error {
	server := httptest.NewUnstartedServer(&handler{sessions: map[string]*session{}})
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it tells of clients that hang up, which all of them do
	server.StartTLS()
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := started(Address{URL: server.URL, CA: ca}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// handler answers GET /WORLD/PATH.
type handler struct {
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
		h.sessions[name] = newSession(world)
	}
	return h.sessions[name]
}

// Desk is where a benchmark asks a server about its worlds.
type Desk struct {
	address Address
	client  *http.Client
}

// NewDesk returns a Desk of the server.
func NewDesk(address Address) *Desk {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(address.CA)
	return &Desk{address, &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}}
}

// The paths that only a benchmark asks.
const (
	watchesPath = "/replay/watches"
	releasePath = "/replay/release"
)

// Watches is how many watches the world was asked for until now.
func (d *Desk) Watches(ctx context.Context, w World) (count int, err error) {
	return count, d.ask(ctx, w, watchesPath, &count)
}

// Release lets the events of a held world go, to the watches that there are and to later ones.
func (d *Desk) Release(ctx context.Context, w World) error {
	var done bool
	return d.ask(ctx, w, releasePath, &done)
}

func (d *Desk) ask(ctx context.Context, w World, path string, answer any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.address.Host(w)+path, nil)
	if err != nil {
		return fmt.Errorf("build a request: %w", err)
	}
	response, err := d.client.Do(request)
	if err != nil {
		return fmt.Errorf("ask the server for %s: %w", path, err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return fmt.Errorf("read the answer of %s: %w", path, err)
	}
	return nil
}
