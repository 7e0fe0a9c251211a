package source

import (
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Discovery asks an API server what it serves, again and again. Two requests do, where the server knows aggregated
// discovery (KEP-3352), and an answer that has not changed is not sent again (RFC 9110, If-None-Match). One goroutine
// at a time uses it.
type Discovery struct {
	client *rest.RESTClient
	host   string
	tags   map[string]string // by path
	asked  [2]document       // as they came last
	last   *Catalog          // what they told, where they told all of it
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
	isSame, err := d.ask(ctx)
	if err == nil && isSame && d.last != nil {
		return d.last, nil
	}
	var told *answers
	if d.last = nil; err == nil {
		told, err = d.readAll(ctx)
	}
	if err != nil {
		clear(d.tags) // of what did not come whole
		return nil, ExplainServerError(d.host, err)
	}
	if len(told.groups) == 0 {
		return nil, fmt.Errorf("ask the API server %s what it serves: it lists no group: check any proxy in front of it", d.host)
	}
	catalog := NewCatalog(told.groups, told.lists, told.failed)
	if d.asked[0].aggregated && d.asked[1].aggregated {
		d.last = catalog
	}
	return catalog, nil
}

// document is the answer of /api, for the core group, or of /apis, for all others. Aggregated it names groups, versions
// and resources; else it names groups and versions, and each version is a document of its own.
type document struct {
	body       []byte
	aggregated bool
}

// accepted is the Accept header that asks for a document.
const accepted = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"

func isAggregated(contentType string) bool {
	base, parameters, err := mime.ParseMediaType(contentType)
	return err == nil && base == runtime.ContentTypeJSON && parameters["g"] == "apidiscovery.k8s.io" &&
		parameters["as"] == "APIGroupDiscoveryList" && parameters["v"] == "v2"
}

// ask asks for the documents, and says whether both are as they were. A server that has no core group, such as an
// aggregated one that is asked by itself, has an empty one of it.
func (d *Discovery) ask(ctx context.Context) (isSame bool, err error) {
	isSame = true
	for i, path := range []string{"/api", "/apis"} {
		var contentType string
		var status int
		answer := d.client.Get().AbsPath(path).SetHeader("Accept", accepted).Do(ctx).ContentType(&contentType).StatusCode(&status)
		body, err := answer.Raw()
		switch {
		case status == http.StatusNotModified:
		case err == nil:
			d.asked[i], isSame = document{body, isAggregated(contentType)}, false
		case path == "/api" && apierrors.IsNotFound(err):
			d.asked[i], isSame = document{}, false
		default:
			return false, err
		}
	}
	return isSame, nil
}

// answers are what a server says that it serves, in its order.
type answers struct {
	groups []*metav1.APIGroup
	lists  []*metav1.APIResourceList
	failed map[schema.GroupVersion]error
}

// readAll reads the documents, and asks for those that they name.
func (d *Discovery) readAll(ctx context.Context) (*answers, error) {
	a := &answers{failed: map[schema.GroupVersion]error{}}
	for _, document := range d.asked {
		var err error
		switch {
		case document.aggregated:
			err = a.addAggregated(document.body)
		case document.body != nil:
			err = d.readVersions(ctx, document.body, a)
		}
		if err != nil {
			return nil, err
		}
	}
	return a, ctx.Err()
}

func (a *answers) addAggregated(body []byte) error {
	var list apidiscoveryv2.APIGroupDiscoveryList
	if err := json.Unmarshal(body, &list); err != nil {
		return err
	}
	for i := range list.Items {
		group := &metav1.APIGroup{Name: list.Items[i].Name}
		a.groups = append(a.groups, group)
		for _, version := range list.Items[i].Versions {
			at := schema.GroupVersion{Group: group.Name, Version: version.Version}
			if version.Freshness == apidiscoveryv2.DiscoveryFreshnessStale {
				a.failed[at] = fmt.Errorf("stale GroupVersion discovery: %v", at)
				continue
			}
			group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: at.String(), Version: at.Version})
			group.PreferredVersion = group.Versions[0]
			a.lists = append(a.lists, &metav1.APIResourceList{GroupVersion: at.String(), APIResources: resourcesOf(version.Resources)})
		}
	}
	return nil
}

// resourcesOf leaves out what has subresources alone: it has no kind.
func resourcesOf(found []apidiscoveryv2.APIResourceDiscovery) (resources []metav1.APIResource) {
	for _, r := range found {
		if r.ResponseKind == nil || *r.ResponseKind == (metav1.GroupVersionKind{}) {
			continue
		}
		resources = append(resources, metav1.APIResource{
			Name: r.Resource, SingularName: r.SingularResource, Kind: r.ResponseKind.Kind,
			Namespaced: r.Scope == apidiscoveryv2.ScopeNamespace, Verbs: r.Verbs, ShortNames: r.ShortNames,
		})
	}
	return resources
}

// readVersions reads a document that is not aggregated, and those of the versions that it names.
func (d *Discovery) readVersions(ctx context.Context, body []byte, a *answers) error {
	var named struct {
		Versions []string           `json:"versions"` // of the core group
		Groups   []*metav1.APIGroup `json:"groups"`
	}
	if err := json.Unmarshal(body, &named); err != nil {
		return err
	}
	root := "/apis/"
	if len(named.Versions) > 0 {
		core := new(metav1.APIGroup)
		for _, version := range named.Versions {
			core.Versions = append(core.Versions, metav1.GroupVersionForDiscovery{GroupVersion: version, Version: version})
		}
		core.PreferredVersion = core.Versions[0]
		root, named.Groups = "/api/", append(named.Groups, core)
	}
	for _, group := range named.Groups {
		a.groups = append(a.groups, group)
		for _, version := range group.Versions {
			at := schema.GroupVersion{Group: group.Name, Version: version.Version}
			list := new(metav1.APIResourceList)
			if err := decodeAnswer(d.client.Get().AbsPath(root+at.String()).Do(ctx), list); err != nil {
				a.failed[at] = err
				continue
			}
			list.GroupVersion = at.String()
			a.lists = append(a.lists, list)
		}
	}
	return nil
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
