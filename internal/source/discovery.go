package source

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/client-go/rest"
)

// Discovery asks an API server what it serves, again and again. Two requests do, since all servers from Kubernetes 1.30
// on know aggregated discovery (KEP-3352), and an answer that has not changed is not sent again (RFC 9110,
// If-None-Match). One goroutine at a time uses it.
type Discovery struct {
	client *rest.RESTClient
	host   string
	tags   map[string]string                     // by path
	told   [2][]apidiscoveryv2.APIGroupDiscovery // of each path, as it came last
	last   *Catalog                              // of these; nil where one did not come
}

// NewDiscovery returns a Discovery that has asked nothing yet.
func NewDiscovery(config *rest.Config) (*Discovery, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // one caller, in sequence
	tags := map[string]string{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &revalidator{next, tags}
	})
	client, _, err := newRESTClient(config, askTime)
	if err != nil {
		return nil, err
	}
	return &Discovery{client: client, host: config.Host, tags: tags}, nil
}

// Read asks for everything. Where a part cannot be told, such as the group of an aggregated API server that is down,
// the catalog says so; an error is that nothing was told. While nothing changes the catalog is the same one.
func (d *Discovery) Read(ctx context.Context) (*Catalog, error) {
	last := d.last
	d.last = nil
	for i, path := range []string{"/api", "/apis"} { // the core group, and all others
		groups, isSame, err := d.ask(ctx, path)
		if err != nil {
			clear(d.tags) // of what did not come whole
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

// accepted is the Accept header of the questions.
const accepted = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// ask asks for the groups of a path, and says whether they are as they were. A server that has no core group, such as
// an aggregated one that is asked by itself, has no path of it.
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

// Definitions reads them.
func (d *Discovery) Definitions(ctx context.Context) (*Definitions, error) {
	found, err := readDefinitions(ctx, d.client.Get())
	if err != nil {
		return nil, ExplainServerError(d.host, err)
	}
	return found, nil
}

// revalidator asks whether the last document of a path still holds, instead of asking for it again (RFC 9110,
// If-None-Match): status 304 is that it does.
type revalidator struct {
	next http.RoundTripper
	tags map[string]string
}

// RoundTrip is http.RoundTripper's.
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

// WrappedRoundTripper is as of client-go's own, which looks through it for the connections.
func (r *revalidator) WrappedRoundTripper() http.RoundTripper { return r.next }
