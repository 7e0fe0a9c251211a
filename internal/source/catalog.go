package source

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Catalog is what an API server serves, as it said at one moment. It is pure, and never changes.
type Catalog struct {
	offered    []offered  // each resource in each version; the first that fits a name is the one meant
	served     []*offered // each resource once, sorted by name, in its preferred version
	serves     map[schema.GroupResource]bool
	untold     map[string]error // by group: the server could not tell all of it
	incomplete error
}

// offered is a resource in one version.
type offered struct {
	change.Resource
	singular     string
	short, verbs []string
}

// isCalled says whether the name, in lower case, is the resource's plural or singular.
func (o *offered) isCalled(name string) bool { return name == o.Name || name == o.singular }

// LeftOut is a resource that is not streamed, or a name that stands for none, and why.
type LeftOut struct {
	Name   string
	Reason string
	Waits  bool // it is configured by name, and will be streamed as soon as it is served
}

// NewCatalog makes a catalog of a server's answers. Of a stale version the server does not know the resources, so
// nothing of that group counts as gone. The core group must come first, as kubectl resolves names.
func NewCatalog(groups []apidiscoveryv2.APIGroupDiscovery) *Catalog {
	c := &Catalog{untold: map[string]error{}, serves: map[schema.GroupResource]bool{}}
	var untold []string
	for i := range groups {
		for _, version := range groups[i].Versions {
			at := schema.GroupVersion{Group: groups[i].Name, Version: version.Version}
			if version.Freshness != apidiscoveryv2.DiscoveryFreshnessStale {
				c.add(at, version.Resources)
				continue
			}
			c.untold[at.Group] = fmt.Errorf("stale GroupVersion discovery: %v", at)
			untold = append(untold, fmt.Sprintf("%s: %v", at, c.untold[at.Group]))
		}
	}
	if slices.Sort(untold); len(untold) > 0 {
		c.incomplete = errors.New("unable to retrieve the complete list of server APIs: " + strings.Join(untold, ", "))
	}
	for i := range c.offered {
		o := &c.offered[i]
		if id := (schema.GroupResource{Group: o.Group, Resource: o.Name}); !c.serves[id] {
			c.serves[id] = true
			c.served = append(c.served, o)
		}
	}
	slices.SortFunc(c.served, func(a, b *offered) int { return strings.Compare(a.String(), b.String()) })
	return c
}

// add adds the resources of a version. The server sorts versions by preference. A resource that only has subresources
// has no kind, and is left out.
func (c *Catalog) add(at schema.GroupVersion, resources []apidiscoveryv2.APIResourceDiscovery) {
	for _, r := range resources {
		if r.ResponseKind == nil || *r.ResponseKind == (metav1.GroupVersionKind{}) {
			continue
		}
		resource := change.Resource{Group: at.Group, Version: at.Version, Name: r.Resource, Kind: r.ResponseKind.Kind}
		resource.ClusterScoped = r.Scope != apidiscoveryv2.ScopeNamespace
		singular := cmp.Or(r.SingularResource, strings.ToLower(resource.Kind))
		c.offered = append(c.offered, offered{Resource: resource, singular: singular, short: r.ShortNames, verbs: r.Verbs})
	}
}

// Incomplete says what the server could not tell: a wildcard may stand for resources that are not in the catalog. It is
// nil if the server told everything.
func (c *Catalog) Incomplete() error { return c.incomplete }

// Serves says whether the resource is served, in any version.
func (c *Catalog) Serves(resource change.Resource) bool {
	return c.serves[schema.GroupResource{Group: resource.Group, Resource: resource.Name}]
}

// Tells says whether the server told everything of the group, so that what is not in the catalog is not served.
func (c *Catalog) Tells(group string) bool { return c.untold[group] == nil }

// IsWildcard says whether the name stands for all resources, or for all of a group.
func IsWildcard(name string) bool { return name == "*" || strings.HasPrefix(name, "*.") }

// IsCustom says whether the name is of a resource that may be installed later: its group is that of a custom resource,
// a domain with a dot.
func IsCustom(name string) bool {
	full, partial := schema.ParseResourceArg(name)
	if full != nil && regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`).MatchString(full.Version) {
		return strings.Contains(full.Group, ".")
	}
	return !IsWildcard(name) && strings.Contains(partial.Group, ".")
}

// Resolve returns what a name stands for: "pods", "po", "pod", "deployments.apps", "deployments.v1.apps", or, with
// any number of results in the order of their names, "*.cert-manager.io" and "*". For a name of one resource it returns
// an *UnknownResourceError or an *UnwatchableError where there is none that can be streamed.
func (c *Catalog) Resolve(name string) ([]change.Resource, error) {
	if IsWildcard(name) {
		return c.resolveAll(name), nil
	}
	found := c.find(name)
	if found == nil {
		return nil, &UnknownResourceError{Name: name, Cause: c.incomplete}
	}
	if !watchable(found.verbs) {
		return nil, &UnwatchableError{Name: name, Verbs: found.verbs}
	}
	return []change.Resource{found.Resource}, nil
}

// find follows kubectl's order: resource.version.group first, then resource.group, of which the group may be cut short;
// then the short names. It returns nil where there is no such resource.
func (c *Catalog) find(name string) *offered {
	full, partial := schema.ParseResourceArg(strings.ToLower(name))
	for _, fits := range []func(*offered) bool{
		func(o *offered) bool {
			return full != nil && o.isCalled(full.Resource) && o.Version == full.Version && (o.Group == full.Group || full.Group == "")
		},
		func(o *offered) bool { return o.isCalled(partial.Resource) && o.Group == partial.Group },
		func(o *offered) bool {
			return o.isCalled(partial.Resource) && strings.HasPrefix(o.Group, partial.Group)
		},
		func(o *offered) bool {
			return slices.Contains(o.short, partial.Resource) && strings.HasPrefix(o.Group, partial.Group)
		},
	} {
		for i := range c.offered {
			if fits(&c.offered[i]) {
				return &c.offered[i]
			}
		}
	}
	return nil
}

func watchable(verbs []string) bool {
	return slices.Contains(verbs, "list") && slices.Contains(verbs, "watch")
}

// Names are the names of what can be streamed: kubectl's form, and the plural without its group.
func (c *Catalog) Names() (names []string) {
	for _, o := range c.served {
		if !watchable(o.verbs) {
			continue
		}
		if names = append(names, o.String()); o.Group != "" {
			names = append(names, o.Name)
		}
	}
	return names
}

// resolveAll returns every resource that can be watched, of one group or of all, each in its preferred version.
func (c *Catalog) resolveAll(name string) []change.Resource {
	var found []change.Resource
	for _, s := range c.served {
		if Covers(name, s.Resource) && c.refusal(name, s) == "" {
			found = append(found, s.Resource)
		}
	}
	return found
}

// LeftOut are the resources that the wildcard covers but does not stand for, in the order of their names.
func (c *Catalog) LeftOut(wildcard string) []LeftOut {
	var left []LeftOut
	for _, s := range c.served {
		if reason := c.refusal(wildcard, s); reason != "" && Covers(wildcard, s.Resource) {
			left = append(left, LeftOut{Name: s.String(), Reason: reason})
		}
	}
	return left
}

// Covers says whether the resource is in the wildcard's group; "*" covers all.
func Covers(wildcard string, resource change.Resource) bool {
	group, oneGroup := strings.CutPrefix(wildcard, "*.")
	return wildcard == "*" || oneGroup && resource.Group == group
}

// refusal says why a wildcard does not stand for a resource that it covers, "" if it does. Secrets leave the cluster
// only if they are configured by name (I9). If two groups serve the same objects, "*" stands for one of them.
func (c *Catalog) refusal(wildcard string, of *offered) string {
	twin, found := Twin(of.Resource)
	switch {
	case !watchable(of.verbs):
		return "it cannot be watched, its verbs are " + strings.Join(of.verbs, ", ")
	case wildcard != "*":
		return ""
	case of.Group == "" && of.Name == "secrets":
		return "secrets are streamed only where they are named"
	case found && c.Serves(twin):
		return "its objects are those of " + twin.String()
	}
	return ""
}

// Twin is the resource of another group that serves the same objects, with the same uids and versions, and for which
// "*" stands: events.k8s.io serves the core group's Events, too.
func Twin(resource change.Resource) (twin change.Resource, found bool) {
	return change.Resource{Name: resource.Name}, resource.String() == "events.events.k8s.io"
}

// UnknownResourceError says that the server does not serve the name.
type UnknownResourceError struct {
	Name  string
	Near  string // what may have been meant; "" if nothing is near
	Cause error  // why the server could not tell everything; nil if it could
}

func (e *UnknownResourceError) Error() string {
	text := fmt.Sprintf("resource %q: the API server serves no such resource: ", e.Name)
	if e.Near != "" {
		text += "did you mean " + e.Near + "? "
	}
	text += "see kubectl api-resources"
	if e.Cause != nil {
		text += fmt.Sprintf(" (its discovery was not complete: %v)", e.Cause)
	}
	return text
}

// UnwatchableError says that the resource of the name cannot be listed and watched.
type UnwatchableError struct {
	Name  string
	Verbs []string
}

func (e *UnwatchableError) Error() string {
	return fmt.Sprintf("resource %q: it cannot be watched, its verbs are %s: leave it out", e.Name, strings.Join(e.Verbs, ", "))
}

// Waits is the text of Error for a resource that may be installed later.
func (e *UnknownResourceError) Waits() string {
	text := "the API server does not serve it yet"
	if e.Cause != nil {
		text = fmt.Sprintf("the API server cannot tell whether it serves it: %v", e.Cause)
	}
	if e.Near != "" {
		text += "; did you mean " + e.Near + "?"
	}
	return text
}

func (e *UnknownResourceError) Unwrap() error { return e.Cause }
