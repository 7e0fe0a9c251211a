package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Catalog is what an API server said at one moment that it serves. It is pure, and never changes.
type Catalog struct {
	served     []served // each resource once, by group and name
	mapper     meta.RESTMapper
	short      []shortName
	versions   map[schema.GroupVersion][]metav1.APIResource
	untold     map[string]error // by group: the server could not tell all of it
	incomplete error
}

// served is a resource in the version that is preferred for it.
type served struct {
	change.Resource
	verbs []string
}

type shortName struct {
	name     string
	resource schema.GroupVersionResource
}

// LeftOut is a resource that is not streamed, or a name that stands for none, and why.
type LeftOut struct {
	Name   string
	Reason string
}

// NewCatalog makes a catalog of a server's answers. incomplete says what it could not tell, nil is nothing: a group in
// it is not gone, whatever else the answers say.
func NewCatalog(groups []*metav1.APIGroup, lists []*metav1.APIResourceList, incomplete error) *Catalog {
	c := &Catalog{versions: map[schema.GroupVersion][]metav1.APIResource{}, untold: map[string]error{}, incomplete: incomplete}
	var failed *discovery.ErrGroupDiscoveryFailed
	if errors.As(incomplete, &failed) {
		for version, err := range failed.Groups {
			c.untold[version.Group] = err
		}
	}
	for _, list := range lists {
		if version, err := schema.ParseGroupVersion(list.GroupVersion); err == nil {
			c.versions[version] = slices.DeleteFunc(slices.Clone(list.APIResources), isSubresource)
		}
	}
	var mapped []*restmapper.APIGroupResources
	for _, group := range groups {
		mapped = append(mapped, c.addGroup(group))
	}
	c.mapper = restmapper.NewDiscoveryRESTMapper(mapped)
	slices.SortFunc(c.served, func(a, b served) int { return strings.Compare(a.String(), b.String()) })
	return c
}

func isSubresource(r metav1.APIResource) bool { return strings.Contains(r.Name, "/") }

// addGroup takes each resource of the group in the first version that has it: the server sorts them by preference, and
// says which one is the first of all.
func (c *Catalog) addGroup(group *metav1.APIGroup) *restmapper.APIGroupResources {
	mapped := &restmapper.APIGroupResources{Group: *group, VersionedResources: map[string][]metav1.APIResource{}}
	versions := slices.Clone(group.Versions)
	slices.SortStableFunc(versions, func(a, b metav1.GroupVersionForDiscovery) int {
		return rank(a, group) - rank(b, group)
	})
	seen := map[string]bool{}
	for _, version := range versions {
		at := schema.GroupVersion{Group: group.Name, Version: version.Version}
		mapped.VersionedResources[version.Version] = c.versions[at]
		for _, r := range c.versions[at] {
			if !seen[r.Name] {
				seen[r.Name] = true
				c.add(at, r)
			}
		}
	}
	return mapped
}

func rank(version metav1.GroupVersionForDiscovery, group *metav1.APIGroup) int {
	if version.Version == group.PreferredVersion.Version {
		return 0
	}
	return 1
}

func (c *Catalog) add(at schema.GroupVersion, r metav1.APIResource) {
	c.served = append(c.served, served{verbs: r.Verbs, Resource: change.Resource{
		Group: at.Group, Version: at.Version, Name: r.Name, Kind: r.Kind, ClusterScoped: !r.Namespaced,
	}})
	for _, short := range r.ShortNames {
		c.short = append(c.short, shortName{short, at.WithResource(r.Name)})
	}
}

// Incomplete says what the server could not tell: resources that a wildcard may stand for and that are not in the
// catalog. It is nil where the server told all.
func (c *Catalog) Incomplete() error { return c.incomplete }

// Serves says whether the resource is served, in any version.
func (c *Catalog) Serves(resource change.Resource) bool {
	return slices.ContainsFunc(c.served, func(s served) bool { return s.Group == resource.Group && s.Name == resource.Name })
}

// Tells says whether the server could tell all of the group, so that what is not in the catalog is not served.
func (c *Catalog) Tells(group string) bool { return c.untold[group] == nil }

// IsWildcard says whether the name stands for all resources, or for all of a group.
func IsWildcard(name string) bool { return name == "*" || strings.HasPrefix(name, "*.") }

// Resolve returns what a name stands for: "pods", "po", "pod", "deployments.apps", "deployments.v1.apps", or, with
// any number of results in the order of their names, "*.cert-manager.io" and "*". For a name of one resource it returns
// an *UnknownResourceError or an *UnwatchableError where there is none that can be streamed.
func (c *Catalog) Resolve(name string) ([]change.Resource, error) {
	if IsWildcard(name) {
		return c.resolveAll(name), nil
	}
	kind, err := c.kindOf(name)
	if err != nil {
		return nil, err
	}
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("resource %q: %w", name, err)
	}
	if err := c.checkVerbs(name, mapping.Resource); err != nil {
		return nil, err
	}
	return []change.Resource{{
		Group: mapping.Resource.Group, Version: mapping.Resource.Version, Name: mapping.Resource.Resource,
		Kind: mapping.GroupVersionKind.Kind, ClusterScoped: mapping.Scope.Name() == meta.RESTScopeNameRoot,
	}}, nil
}

// kindOf follows kubectl's order: resource.version.group first, then resource.group; then the short names.
func (c *Catalog) kindOf(name string) (schema.GroupVersionKind, error) {
	full, partial := schema.ParseResourceArg(strings.ToLower(name))
	if full != nil {
		if kind, err := c.mapper.KindFor(*full); err == nil {
			return kind, nil
		}
	}
	kind, err := c.mapper.KindFor(partial.WithVersion(""))
	if !meta.IsNoMatchError(err) {
		return kind, named(name, err)
	}
	for _, s := range c.short {
		if s.name == partial.Resource && strings.HasPrefix(s.resource.Group, partial.Group) {
			kind, err := c.mapper.KindFor(s.resource)
			return kind, named(name, err)
		}
	}
	return kind, &UnknownResourceError{Name: name, Cause: c.incomplete}
}

func named(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("resource %q: %w", name, err)
}

// checkVerbs returns an error where the resource cannot be listed and watched.
func (c *Catalog) checkVerbs(name string, resource schema.GroupVersionResource) error {
	for _, r := range c.versions[resource.GroupVersion()] {
		if r.Name == resource.Resource && !watchable(r.Verbs) {
			return &UnwatchableError{Name: name, Verbs: r.Verbs}
		}
	}
	return nil
}

func watchable(verbs []string) bool {
	return slices.Contains(verbs, "list") && slices.Contains(verbs, "watch")
}

// resolveAll returns every resource that can be watched, of one group or of all, each in its preferred version.
func (c *Catalog) resolveAll(name string) []change.Resource {
	var found []change.Resource
	for _, s := range c.served {
		if Covers(name, s.Resource) && watchable(s.verbs) && c.refusal(name, s.Resource) == "" {
			found = append(found, s.Resource)
		}
	}
	return found
}

// LeftOut says which of the resources that a wildcard covers it does not stand for, in the order of their names.
func (c *Catalog) LeftOut(wildcard string) []LeftOut {
	var left []LeftOut
	for _, s := range c.served {
		reason := c.refusal(wildcard, s.Resource)
		switch {
		case !Covers(wildcard, s.Resource):
			continue
		case !watchable(s.verbs):
			reason = "it cannot be watched, its verbs are " + strings.Join(s.verbs, ", ")
		case reason == "":
			continue
		}
		left = append(left, LeftOut{s.String(), reason})
	}
	return left
}

// Covers says whether the resource is one of the wildcard's group.
func Covers(wildcard string, resource change.Resource) bool {
	group, oneGroup := strings.CutPrefix(wildcard, "*.")
	return wildcard == "*" || oneGroup && resource.Group == group
}

// refusal says why a wildcard does not stand for a resource that it covers, "" is that it does. Secrets leave the cluster
// only where they are asked for by name (I9). Where two groups serve the same objects, "*" stands for one of them.
func (c *Catalog) refusal(wildcard string, resource change.Resource) string {
	if wildcard != "*" {
		return ""
	}
	if resource.Group == "" && resource.Name == "secrets" {
		return "secrets are streamed only where they are named"
	}
	if twin, found := Twin(resource); found && c.Serves(twin) {
		return "its objects are those of " + twin.String()
	}
	return ""
}

// Twin is the resource that serves the same objects, with the same uids and versions, in another group, and that "*"
// stands for: events.k8s.io serves the core group's Events again, and servers before 1.22 had in extensions what apps
// and networking.k8s.io have.
func Twin(resource change.Resource) (twin change.Resource, found bool) {
	home := map[string]string{
		"events.events.k8s.io": "", "daemonsets.extensions": "apps", "deployments.extensions": "apps", "replicasets.extensions": "apps",
		"ingresses.extensions": "networking.k8s.io", "networkpolicies.extensions": "networking.k8s.io", "podsecuritypolicies.extensions": "policy",
	}
	group, found := home[resource.String()]
	return change.Resource{Group: group, Name: resource.Name}, found
}
