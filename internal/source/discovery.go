package source

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
)

// Discovery asks an API server what it serves, again and again. Two requests do, where the server knows aggregated
// discovery (KEP-3352), and an answer that has not changed is not sent again (RFC 9110, If-None-Match). One goroutine
// at a time uses it.
type Discovery struct {
	documents
	host string
	last *Catalog             // what was told last, where two documents told all of it
	sums [2][sha256.Size]byte // of these documents
}

// NewDiscovery returns a Discovery that has asked nothing yet.
func NewDiscovery(config *rest.Config) (*Discovery, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // one caller, in sequence
	config.Timeout = askTime
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return newRevalidator(next) })
	client, err := newRESTClient(config)
	if err != nil {
		return nil, err
	}
	return &Discovery{documents: documents{client}, host: config.Host}, nil
}

// Read asks for everything. Where a part cannot be told, such as the group of an aggregated API server that is down,
// the catalog says so; an error is that nothing was told. While nothing changes the catalog is the same one.
func (d *Discovery) Read(ctx context.Context) (*Catalog, error) {
	found, err := d.ask(ctx)
	if err != nil {
		return nil, ExplainServerError(d.host, err)
	}
	sums := [2][sha256.Size]byte{sha256.Sum256(found[0].body), sha256.Sum256(found[1].body)}
	if d.last != nil && d.sums == sums {
		return d.last, nil
	}
	told, err := d.readAll(ctx, found)
	if err != nil {
		return nil, ExplainServerError(d.host, err)
	}
	if len(told.groups) == 0 {
		return nil, fmt.Errorf("ask the API server %s what it serves: it lists no group: check any proxy in front of it", d.host)
	}
	catalog := NewCatalog(told.groups, told.lists, told.incomplete())
	d.last, d.sums = nil, sums
	if found[0].aggregated && found[1].aggregated {
		d.last = catalog
	}
	return catalog, nil
}

// Definitions reads them.
func (d *Discovery) Definitions(ctx context.Context) (*Definitions, error) {
	found, err := readDefinitions(ctx, d.client.Get())
	if err != nil {
		return nil, ExplainServerError(d.host, err)
	}
	return found, nil
}

// revalidator keeps the last answer that a server has tagged, and asks whether it still holds instead of asking for it
// again (RFC 9110, If-None-Match). client-go does so for kubectl in files; this is the same in memory.
type revalidator struct {
	next http.RoundTripper

	mu   sync.Mutex // guards the following
	kept map[string]keptAnswer
}

type keptAnswer struct {
	header http.Header
	body   []byte
}

func newRevalidator(next http.RoundTripper) *revalidator {
	return &revalidator{next: next, kept: map[string]keptAnswer{}}
}

// WrappedRoundTripper is as of client-go's own, which looks through it for the connections.
func (r *revalidator) WrappedRoundTripper() http.RoundTripper { return r.next }

// RoundTrip is http.RoundTripper's.
func (r *revalidator) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		return r.next.RoundTrip(request)
	}
	key := request.URL.Path + " " + request.Header.Get("Accept")
	r.mu.Lock()
	known, found := r.kept[key]
	r.mu.Unlock()
	if found {
		request = request.Clone(request.Context())
		request.Header.Set("If-None-Match", known.header.Get("ETag"))
	}
	answer, err := r.next.RoundTrip(request)
	switch {
	case err != nil:
		return nil, err
	case found && answer.StatusCode == http.StatusNotModified:
		return known.again(answer)
	case answer.StatusCode == http.StatusOK && answer.Header.Get("ETag") != "":
		return r.keep(key, answer)
	}
	return answer, nil
}

// keep reads the answer whole: what was cut off is no answer, and is not kept.
func (r *revalidator) keep(key string, answer *http.Response) (*http.Response, error) {
	body, err := io.ReadAll(answer.Body)
	closeErr := answer.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", key, err)
	}
	if closeErr == nil {
		r.mu.Lock()
		r.kept[key] = keptAnswer{answer.Header.Clone(), body}
		r.mu.Unlock()
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, nil
}

// again makes the answer that is confirmed of the one that confirms it.
func (k keptAnswer) again(answer *http.Response) (*http.Response, error) {
	if err := answer.Body.Close(); err != nil {
		return nil, err
	}
	answer.StatusCode, answer.Status, answer.Header = http.StatusOK, "200 OK", k.header.Clone()
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(k.body)), int64(len(k.body))
	return answer, nil
}
