package source

import (
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// document is the answer of /api, for the core group, or of /apis, for all others. Aggregated it names groups, versions
// and resources; else it names groups and versions, and each version is a document of its own.
type document struct {
	body       []byte
	aggregated bool
}

// aggregatedVersions are the versions of aggregated discovery: the older one, of the servers 1.26 to 1.29, has the same
// fields.
func aggregatedVersions() []string { return []string{"v2", "v2beta1"} }

// documents asks a server for its documents.
type documents struct{ client *rest.RESTClient }

// accepted is the Accept header that asks for a document.
func accepted() string {
	var types []string
	for _, version := range aggregatedVersions() {
		types = append(types, runtime.ContentTypeJSON+";g=apidiscovery.k8s.io;v="+version+";as=APIGroupDiscoveryList")
	}
	return strings.Join(append(types, runtime.ContentTypeJSON), ",")
}

func isAggregated(contentType string) bool {
	base, parameters, err := mime.ParseMediaType(contentType)
	return err == nil && base == runtime.ContentTypeJSON && parameters["g"] == "apidiscovery.k8s.io" &&
		parameters["as"] == "APIGroupDiscoveryList" && slices.Contains(aggregatedVersions(), parameters["v"])
}

// ask asks for the documents. A server that has no core group, such as an aggregated one that is asked by itself, has
// an empty one of it.
func (r *documents) ask(ctx context.Context) (documents [2]document, err error) {
	for i, path := range []string{"/api", "/apis"} {
		var contentType string
		body, err := r.client.Get().AbsPath(path).SetHeader("Accept", accepted()).Do(ctx).ContentType(&contentType).Raw()
		if err != nil && (path != "/api" || !apierrors.IsNotFound(err)) {
			return documents, err
		}
		if err == nil {
			documents[i] = document{body, isAggregated(contentType)}
		}
	}
	return documents, nil
}

// answers are what a server says that it serves, in its order.
type answers struct {
	groups []*metav1.APIGroup
	lists  []*metav1.APIResourceList
	failed map[schema.GroupVersion]error
}

// incomplete is an *IncompleteError, or nil where the server told all.
func (a *answers) incomplete() error {
	if len(a.failed) == 0 {
		return nil
	}
	return &IncompleteError{Versions: a.failed}
}

// IncompleteError says what of its groups an API server could not tell, and why.
type IncompleteError struct {
	Versions map[schema.GroupVersion]error
}

func (e *IncompleteError) Error() string {
	var all []string
	for version, err := range e.Versions {
		all = append(all, fmt.Sprintf("%s: %v", version, err))
	}
	slices.Sort(all)
	return "unable to retrieve the complete list of server APIs: " + strings.Join(all, ", ")
}

// readAll reads the documents, and asks for those that they name.
func (r *documents) readAll(ctx context.Context, documents [2]document) (*answers, error) {
	a := &answers{failed: map[schema.GroupVersion]error{}}
	for _, document := range documents {
		var err error
		switch {
		case document.aggregated:
			err = a.addAggregated(document.body)
		case document.body != nil:
			err = r.readVersions(ctx, document.body, a)
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
func (r *documents) readVersions(ctx context.Context, body []byte, a *answers) error {
	var named struct {
		Versions []string           `json:"versions"` // of the core group
		Groups   []*metav1.APIGroup `json:"groups"`
	}
	if err := json.Unmarshal(body, &named); err != nil {
		return err
	}
	if len(named.Versions) > 0 {
		named.Groups = append(named.Groups, coreGroup(named.Versions))
	}
	for _, group := range named.Groups {
		a.groups = append(a.groups, group)
		for _, version := range group.Versions {
			r.readVersion(ctx, schema.GroupVersion{Group: group.Name, Version: version.Version}, a)
		}
	}
	return nil
}

func coreGroup(versions []string) *metav1.APIGroup {
	group := new(metav1.APIGroup)
	for _, version := range versions {
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: version, Version: version})
	}
	group.PreferredVersion = group.Versions[0]
	return group
}

func (r *documents) readVersion(ctx context.Context, at schema.GroupVersion, a *answers) {
	path := "/apis/" + at.String()
	if at.Group == "" {
		path = "/api/" + at.Version
	}
	list := new(metav1.APIResourceList)
	if err := decodeAnswer(r.client.Get().AbsPath(path).Do(ctx), list); err != nil {
		a.failed[at] = err
		return
	}
	list.GroupVersion = at.String()
	a.lists = append(a.lists, list)
}
