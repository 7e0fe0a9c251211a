package source

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/client-go/rest"
)

// Discovery asks an API server what it serves, again and again. That takes two requests, since all servers from
// Kubernetes 1.30 on have aggregated discovery (KEP-3352), and an unchanged answer is not sent again (RFC 9110,
// If-None-Match). One goroutine at a time uses it.
type Discovery struct {
	client *rest.RESTClient
	host   string
	tags   map[string]string                     // by path
	told   [2][]apidiscoveryv2.APIGroupDiscovery // the last answer for each path
	last   *Catalog                              // of these; nil if the last Read failed
}

// NewDiscovery returns a Discovery that has asked nothing yet.
func NewDiscovery(config *rest.Config) (*Discovery, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Timeout = -1, askTime // one caller, in sequence
	tags := map[string]string{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &revalidator{next, tags}
	})
	client, _, err := newRESTClient(config)
	if err != nil {
		return nil, err
	}
	return &Discovery{client: client, host: config.Host, tags: tags}, nil
}

// Read asks for everything. If the server cannot tell a part, such as the group of an aggregated API server that is
// down, the catalog says so; an error says that nothing is known. While nothing changes, it returns the same catalog.
func (d *Discovery) Read(ctx context.Context) (*Catalog, error) {
	last := d.last
	d.last = nil
	for i, path := range []string{"/api", "/apis"} { // the core group, and all others
		groups, isSame, err := d.ask(ctx, path)
		if err != nil {
			clear(d.tags) // the answer may not have come whole
			return nil, ExplainServerError(d.host, err)
		}
		if !isSame {
			d.told[i], last = groups, nil
		}
	}
	groups := slices.Concat(d.told[0], d.told[1])
	if len(groups) == 0 {
		return nil, fmt.Errorf("ask the API server %s what it serves: it lists no group: check any proxy in front of it", d.host)
	}
	if d.last = last; last == nil {
		d.last = NewCatalog(groups)
	}
	return d.last, nil
}

// accepted is the Accept header of Discovery's requests.
const accepted = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// ask asks for the groups of a path, and says whether they are unchanged. A server without a core group, such as an
// aggregated one that is asked directly, has no such path.
func (d *Discovery) ask(ctx context.Context, path string) (groups []apidiscoveryv2.APIGroupDiscovery, isSame bool, err error) {
	var status int
	answer := d.client.Get().AbsPath(path).SetHeader("Accept", accepted).Do(ctx).StatusCode(&status)
	switch {
	case status == http.StatusNotModified:
		return nil, true, nil
	case status == http.StatusNotFound && path == "/api":
		return nil, false, nil
	}
	var list apidiscoveryv2.APIGroupDiscoveryList
	if err := decodeAnswer(answer, &list); err != nil {
		return nil, false, err
	}
	if list.Kind != "APIGroupDiscoveryList" {
		return nil, false, fmt.Errorf("%s is of kind %.40q: want Kubernetes 1.30 or later", path, list.Kind)
	}
	return list.Items, false, nil
}

// Definitions reads the Definitions of the cluster.
func (d *Discovery) Definitions(ctx context.Context) (*Definitions, error) {
	found, err := readDefinitions(ctx, d.client.Get())
	if err != nil {
		return nil, ExplainServerError(d.host, err)
	}
	return found, nil
}

// revalidator asks for a document only if it has changed (RFC 9110, If-None-Match); if not, the answer has status 304.
type revalidator struct {
	next http.RoundTripper
	tags map[string]string
}

// RoundTrip implements http.RoundTripper.
func (r *revalidator) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Header.Get("Accept") != accepted {
		return r.next.RoundTrip(request)
	}
	path := request.URL.Path
	if tag := r.tags[path]; tag != "" {
		request = request.Clone(request.Context())
		request.Header.Set("If-None-Match", tag)
	}
	answer, err := r.next.RoundTrip(request)
	if err == nil && answer.StatusCode == http.StatusOK {
		r.tags[path] = answer.Header.Get("ETag")
	}
	return answer, err
}

// WrappedRoundTripper lets client-go find the transport of the connections.
func (r *revalidator) WrappedRoundTripper() http.RoundTripper { return r.next }
