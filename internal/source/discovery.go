package source

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Discovery resolves the names that people give resources, as kubectl does. What the server tells is asked once.
type Discovery struct {
	client     discovery.CachedDiscoveryInterface
	mapper     meta.RESTMapper
	incomplete error
}

// NewDiscovery returns a Discovery that has asked nothing yet.
func NewDiscovery(config *rest.Config) (*Discovery, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("build a discovery client for %s: %w", config.Host, err)
	}
	cached := memory.NewMemCacheClient(client)
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, func(string) {})
	return &Discovery{client: cached, mapper: mapper}, nil
}

// UnknownResourceError is a name that the server does not serve.
type UnknownResourceError struct {
	Name  string
	Cause error // why the server could not tell all, if so
}

func (e *UnknownResourceError) Error() string {
	text := fmt.Sprintf("resource %q: the API server serves no such resource: see kubectl api-resources", e.Name)
	if e.Cause != nil {
		text += fmt.Sprintf(" (its discovery was not complete: %v)", e.Cause)
	}
	return text
}

func (e *UnknownResourceError) Unwrap() error { return e.Cause }

// UnwatchableError is a name of something that cannot be streamed.
type UnwatchableError struct {
	Name  string
	Verbs []string
}

func (e *UnwatchableError) Error() string {
	return fmt.Sprintf("resource %q: it cannot be watched, its verbs are %s: leave it out", e.Name, strings.Join(e.Verbs, ", "))
}

// Resolve returns what a name stands for: "pods", "po", "pod", "deployments.apps", "deployments.v1.apps", or, with
// several results in the order of their names, "*.cert-manager.io" and "*". It returns an *UnknownResourceError, an
// *UnwatchableError, or why the server could not be asked.
func (d *Discovery) Resolve(name string) ([]change.Resource, error) {
	if name == "*" || strings.HasPrefix(name, "*.") {
		return d.resolveAll(name)
	}
	kind, err := d.kindOf(name)
	if err != nil {
		return nil, err
	}
	mapping, err := d.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("resource %q: %w", name, err)
	}
	if err := d.checkVerbs(name, mapping.Resource); err != nil {
		return nil, err
	}
	return []change.Resource{{
		Group: mapping.Resource.Group, Version: mapping.Resource.Version, Name: mapping.Resource.Resource,
		Kind: mapping.GroupVersionKind.Kind, ClusterScoped: mapping.Scope.Name() == meta.RESTScopeNameRoot,
	}}, nil
}

// kindOf follows kubectl's order: resource.version.group first, then resource.group.
func (d *Discovery) kindOf(name string) (schema.GroupVersionKind, error) {
	full, partial := schema.ParseResourceArg(strings.ToLower(name))
	if full != nil {
		if kind, err := d.mapper.KindFor(*full); err == nil {
			return kind, nil
		}
	}
	kind, err := d.mapper.KindFor(partial.WithVersion(""))
	if meta.IsNoMatchError(err) {
		_, _, cause := d.client.ServerGroupsAndResources()
		return kind, &UnknownResourceError{Name: name, Cause: cause}
	}
	if err != nil {
		return kind, fmt.Errorf("resource %q: %w", name, err)
	}
	return kind, nil
}

// checkVerbs returns an error where the resource cannot be listed and watched.
func (d *Discovery) checkVerbs(name string, resource schema.GroupVersionResource) error {
	served, err := d.client.ServerResourcesForGroupVersion(resource.GroupVersion().String())
	if err != nil {
		return fmt.Errorf("resource %q: read what %s serves: %w", name, resource.GroupVersion(), err)
	}
	for _, r := range served.APIResources {
		if r.Name == resource.Resource && !watchable(r) {
			return &UnwatchableError{Name: name, Verbs: r.Verbs}
		}
	}
	return nil
}

func watchable(r metav1.APIResource) bool {
	return slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch")
}

// resolveAll returns every resource that can be watched, of one group or of all, each in its preferred version.
func (d *Discovery) resolveAll(name string) ([]change.Resource, error) {
	lists, cause := d.client.ServerPreferredResources()
	if len(lists) == 0 && cause != nil {
		return nil, cause
	}
	d.incomplete = cause
	group, oneGroup := strings.CutPrefix(name, "*.")
	var found []change.Resource
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || oneGroup && version.Group != group {
			continue
		}
		for _, r := range list.APIResources {
			if watchable(r) && (oneGroup || !needsItsName(version.Group, r.Name)) {
				found = append(found, change.Resource{
					Group: version.Group, Version: version.Version, Name: r.Name, Kind: r.Kind, ClusterScoped: !r.Namespaced,
				})
			}
		}
	}
	if len(found) == 0 {
		return nil, &UnknownResourceError{Name: name, Cause: cause}
	}
	slices.SortFunc(found, func(a, b change.Resource) int { return strings.Compare(a.String(), b.String()) })
	return found, nil
}

// Incomplete says what the server could not tell when a name with "*" was resolved: resources that the name may stand
// for and that are not in its answer. It is nil where the answer was whole.
func (d *Discovery) Incomplete() error { return d.incomplete }

// needsItsName says whether "*" leaves the resource out. events.k8s.io serves the Events of the core group again, with
// the same uid and resourceVersion. Secrets leave the cluster only where they are asked for by name (I9).
func needsItsName(group, name string) bool {
	return group == "events.k8s.io" && name == "events" || group == "" && name == "secrets"
}
