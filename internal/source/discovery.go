package source

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/third_party/forked/httpcache"
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
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return revalidator{&httpcache.Transport{Transport: tagged{next}, Cache: httpcache.NewMemoryCache()}, next}
	})
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

// revalidator keeps the last answers, and asks whether they still hold instead of asking for them again (RFC 9110,
// If-None-Match), as client-go does for kubectl in files.
type revalidator struct {
	*httpcache.Transport
	next http.RoundTripper
}

// WrappedRoundTripper is as of client-go's own, which looks through it for the connections.
func (r revalidator) WrappedRoundTripper() http.RoundTripper { return r.next }

// tagged lets only answers be kept that have a tag: the pages of a list have none, and each has a URL of its own (I6).
type tagged struct{ next http.RoundTripper }

// RoundTrip is http.RoundTripper's.
func (t tagged) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(request)
	if err == nil && answer.StatusCode != http.StatusNotModified && answer.Header.Get("ETag") == "" {
		answer.Header.Set("Cache-Control", "no-store")
	}
	return answer, err
}
