package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// counts are how often the exporter asked for what.
type counts struct {
	lists    int // of objects
	watches  int
	versions int // lists of one object: where the server stands
	others   int
}

// proxy passes the exporter's requests on to the API server as its administrator, and counts them.
type proxy struct {
	server *httptest.Server

	mu    sync.Mutex
	asked counts
	open  map[string]int // watches, by path
}

func newProxy(to *rest.Config) (*proxy, error) {
	target, err := url.Parse(to.Host)
	if err != nil {
		return nil, fmt.Errorf("read the API server's URL: %w", err)
	}
	transport, err := rest.TransportFor(to)
	if err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	p := &proxy{open: map[string]int{}}
	pass := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = target.Host },
		Transport:     transport,
		FlushInterval: -1,
		ModifyResponse: func(answer *http.Response) error {
			if isWatch(answer.Request) && answer.StatusCode == http.StatusOK {
				p.note(answer.Request.URL.Path, 1)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.count(r)
		pass.ServeHTTP(w, r)
	}))
	p.server.EnableHTTP2 = true
	p.server.StartTLS()
	return p, nil
}

func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") == "true" }

func (p *proxy) count(r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	query := r.URL.Query()
	switch {
	case isWatch(r):
		p.asked.watches++
	case query.Get("limit") == "1":
		p.asked.versions++
	case query.Has("limit"):
		p.asked.lists++
	default:
		p.asked.others++
	}
}

func (p *proxy) note(path string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[strings.Clone(path)] += n
}

// watched is how many resources had a watch since reset.
func (p *proxy) watched() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open)
}

func (p *proxy) counts() counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// reset forgets what was asked.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = counts{}
	clear(p.open)
}

// URL is where the proxy listens.
func (p *proxy) URL() string { return p.server.URL }

// CA is what the proxy's certificate is trusted by.
func (p *proxy) CA() []byte { return encode(p.server.Certificate()) }

func encode(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}

// Close ends it.
func (p *proxy) Close() {
	p.server.CloseClientConnections()
	p.server.Close()
}
