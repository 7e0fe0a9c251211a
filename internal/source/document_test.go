package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/kubecdc/kubecdc/internal/change"
)

// servedDocuments is an API server: documents by path. Those that have an items field are sent where aggregated
// discovery is asked for, in its version.
type servedDocuments struct {
	version   string // of aggregated discovery
	documents map[string]string
	down      map[string]int // status by path
	etag      string         // of all documents; "" is none
	sent      int            // documents
	confirmed int            // that they have not changed
}

func (s *servedDocuments) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	path := request.URL.Path
	if s.down[path] != 0 {
		w.WriteHeader(s.down[path])
		return
	}
	if s.etag != "" {
		w.Header().Set("ETag", s.etag)
	}
	if s.etag != "" && request.Header.Get("If-None-Match") == s.etag {
		s.confirmed++
		w.WriteHeader(http.StatusNotModified)
		return
	}
	s.sent++
	w.Header().Set("Content-Type", "application/json")
	if s.version != "" && strings.Contains(request.Header.Get("Accept"), "v="+s.version+";as=APIGroupDiscoveryList") {
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v="+s.version+";as=APIGroupDiscoveryList")
		path += " aggregated"
	}
	fmt.Fprint(w, s.documents[path])
}

func (s *servedDocuments) start(t *testing.T) *rest.Config {
	t.Helper()
	server := httptest.NewServer(s)
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
	})
	return &rest.Config{Host: server.URL, Transport: transport}
}

func (s *servedDocuments) discovery(t *testing.T) *Discovery {
	t.Helper()
	d, err := NewDiscovery(s.start(t))
	must(t, err)
	return d
}

func readCatalog(t *testing.T, d *Discovery) *Catalog {
	t.Helper()
	c, err := d.Read(t.Context())
	must(t, err)
	return c
}

func gears() change.Resource {
	return change.Resource{Group: "example.com", Version: "v1", Name: "gears", Kind: "Gear"}
}

// staleDocuments are the usual ones while example.com is down.
func staleDocuments() map[string]string {
	all := usualDocuments()
	all["/apis aggregated"] = strings.Replace(all["/apis aggregated"],
		`"freshness":"Current","resources":[{"resource":"gears"`, `"freshness":"Stale","resources":[{"resource":"gears"`, 1)
	return all
}

// usualDocuments are a small server's. Where aggregated discovery is not asked for, it has groups without resources.
func usualDocuments() map[string]string {
	return map[string]string{
		"/api":  `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,

		"/api aggregated": `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":""},"versions":[{"version":"v1","freshness":"Current","resources":[
			{"resource":"pods","responseKind":{"group":"","version":"v1","kind":"Pod"},"scope":"Namespaced","singularResource":"pod","verbs":["list","watch"],"shortNames":["po"],"subresources":[{"subresource":"status","responseKind":{"group":"","version":"v1","kind":"Pod"},"verbs":["get"]}]},
			{"resource":"nodes","responseKind":{"group":"","version":"v1","kind":"Node"},"scope":"Cluster","singularResource":"","verbs":["list","watch"]}]}]}]}`,
		"/apis aggregated": `{"kind":"APIGroupDiscoveryList","items":[
			{"metadata":{"name":"apps"},"versions":[{"version":"v1","freshness":"Current","resources":[{"resource":"deployments","responseKind":{"group":"apps","version":"v1","kind":"Deployment"},"scope":"Namespaced","singularResource":"deployment","verbs":["list","watch"],"shortNames":["deploy"]}]},
				{"version":"v1beta1","freshness":"Current","resources":[{"resource":"deployments","responseKind":{"group":"apps","version":"v1beta1","kind":"Deployment"},"scope":"Namespaced","singularResource":"deployment","verbs":["list","watch"],"shortNames":["deploy"]},{"resource":"oddities","responseKind":{"group":"apps","version":"v1beta1","kind":"Oddity"},"scope":"Namespaced","singularResource":"oddity","verbs":["list"]},{"resource":"parents","scope":"Namespaced","singularResource":"","verbs":[],"subresources":[{"subresource":"scale","responseKind":{"group":"apps","version":"v1beta1","kind":"Scale"},"verbs":["get"]}]}]}]},
			{"metadata":{"name":"example.com"},"versions":[{"version":"v1","freshness":"Current","resources":[{"resource":"gears","responseKind":{"group":"example.com","version":"v1","kind":"Gear"},"scope":"Cluster","singularResource":"gear","verbs":["list","watch"]}]}]}]}`,
	}
}

// told by client-go is the oracle of what ours reads.
func toldByClientGo(t *testing.T, config *rest.Config) (*Catalog, []*restmapper.APIGroupResources) {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	must(t, err)
	groups, lists, err := client.ServerGroupsAndResourcesWithContext(t.Context())
	down, _ := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err)
	if err != nil && down == nil {
		t.Fatal(err)
	}
	var found []apidiscoveryv2.APIGroupDiscovery
	var resources []*restmapper.APIGroupResources
	for _, group := range groups {
		versioned := map[string][]metav1.APIResource{}
		for _, version := range group.Versions { // the lists are in any order
			is := func(list *metav1.APIResourceList) bool { return list.GroupVersion == version.GroupVersion }
			n := slices.IndexFunc(lists, is)
			if n < 0 {
				continue
			}
			list, at := lists[n], schema.GroupVersion{Group: group.Name, Version: version.Version}
			versioned[at.Version] = list.APIResources
			for _, r := range list.APIResources {
				if strings.Contains(r.Name, "/") {
					continue
				}
				one := apidiscoveryv2.APIResourceDiscovery{
					Resource: r.Name, SingularResource: r.SingularName, ResponseKind: &metav1.GroupVersionKind{Kind: r.Kind}, Verbs: r.Verbs, ShortNames: r.ShortNames,
				}
				if r.Namespaced {
					one.Scope = apidiscoveryv2.ScopeNamespace
				}
				found = addTold(found, at, apidiscoveryv2.DiscoveryFreshnessCurrent, one)
			}
		}
		resources = append(resources, &restmapper.APIGroupResources{Group: *group, VersionedResources: versioned})
	}
	if down != nil {
		for at := range down.Groups {
			found = addTold(found, at, apidiscoveryv2.DiscoveryFreshnessStale)
		}
	}
	return NewCatalog(found), resources
}

// text is all that a catalog says.
func text(t *testing.T, c *Catalog) string {
	t.Helper()
	var parts []string
	for _, o := range c.offered {
		line, err := json.Marshal([]any{o.Resource, o.singular, o.short, o.verbs})
		must(t, err)
		parts = append(parts, string(line))
	}
	for _, s := range c.served {
		parts = append(parts, "served "+s.APIVersion()+" "+s.Name)
	}
	return strings.Join(parts, "\n") + fmt.Sprintf("\n%v", c.incomplete)
}

// TestI4DiscoveryIsReadAsClientGoReadsIt, also where parts of it are down.
func TestI4DiscoveryIsReadAsClientGoReadsIt(t *testing.T) {
	for name, server := range map[string]*servedDocuments{
		"aggregated":                  {version: "v2", documents: usualDocuments()},
		"aggregated, a group is down": {version: "v2", documents: staleDocuments()},
		"no core group":               {version: "v2", documents: usualDocuments(), down: map[string]int{"/api": 404}},
	} {
		config := server.start(t)
		want, _ := toldByClientGo(t, config)
		d, err := NewDiscovery(config)
		must(t, err)
		got, err := d.Read(t.Context())
		if err != nil || text(t, got) != text(t, want) {
			t.Errorf("%s: %v, got\n%s\nwant\n%s", name, err, text(t, got), text(t, want))
		}
	}
}

// TestDiscoveryThatHasNotChangedIsNotSentAgain, and gives the same catalog. One that has is read anew, as is one that
// came in part. What is not aggregated is refused, rather than taken for a server that has little.
func TestDiscoveryThatHasNotChangedIsNotSentAgain(t *testing.T) {
	s := &servedDocuments{version: "v2", documents: usualDocuments(), etag: `"1"`, down: map[string]int{}}
	d := s.discovery(t)
	first := readCatalog(t, d)
	if readCatalog(t, d) != first || s.sent != 2 || s.confirmed != 2 || !first.Serves(gears()) {
		t.Errorf("sent %d documents and confirmed %d, want 2 and 2, and the same catalog twice", s.sent, s.confirmed)
	}
	s.etag, s.documents, s.down["/apis"] = `"2"`, staleDocuments(), 503
	if c, err := d.Read(t.Context()); err == nil {
		t.Errorf("half of discovery is taken for all: %s", text(t, c))
	}
	delete(s.down, "/apis")
	if c := readCatalog(t, d); c.Serves(gears()) || c.Tells("example.com") || !c.Tells("") {
		t.Errorf("a group that is down: serves %t, tells %t", c.Serves(gears()), c.Tells("example.com"))
	}
	s.etag, s.version = `"3"`, ""
	if c, err := d.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "1.30") {
		t.Errorf("of a server without aggregated discovery: %v, %v", c, err)
	}
}

func TestI4DiscoveryThatFailsTellsNothing(t *testing.T) {
	s := &servedDocuments{version: "v2", documents: usualDocuments(), down: map[string]int{"/apis": 503, "/api": 503}}
	if c, err := s.discovery(t).Read(t.Context()); err == nil {
		t.Errorf("a catalog %+v of an API server that does not answer", c)
	}
}

// TestNamesAreResolvedAsByClientGosMapper, with and without version and group, but for kinds that are none of the
// server's.
func TestNamesAreResolvedAsByClientGosMapper(t *testing.T) {
	server := &servedDocuments{version: "v2", documents: usualDocuments()}
	c, resources := toldByClientGo(t, server.start(t))
	mapper := restmapper.NewDiscoveryRESTMapper(resources)
	for _, name := range []string{"pods", "pod", "nodes", "node", "deployments", "deployment", "oddities", "gears", "gear", "nothing"} {
		for _, suffix := range []string{"", ".apps", ".app", ".v1.apps", ".v1beta1.apps", ".v2.apps", ".example.com", ".v1.example.com", ".v1."} {
			want := "nothing"
			full, partial := schema.ParseResourceArg(name + suffix)
			var kind schema.GroupVersionKind
			err := fmt.Errorf("no version")
			if full != nil {
				kind, err = mapper.KindFor(*full)
			}
			if err != nil {
				kind, err = mapper.KindFor(partial.WithVersion(""))
			}
			if err == nil {
				mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
				must(t, err)
				want = mapping.Resource.String()
			}
			got := "nothing"
			if o := c.find(name + suffix); o != nil {
				got = schema.GroupVersionResource{Group: o.Group, Version: o.Version, Resource: o.Name}.String()
			}
			if got != want {
				t.Errorf("%s is %s, want %s", name+suffix, got, want)
			}
		}
	}
	if !slices.IsSortedFunc(c.served, func(a, b *offered) int { return strings.Compare(a.String(), b.String()) }) {
		t.Error("what is served is not in the order of its names")
	}
}
