package selection

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/source"
)

// Derived is what is made of the present choice, again only when that is another one. It may be asked from any
// goroutine.
func Derived[T any](c *Current, build func(*Choice) T) func() T {
	type known struct {
		of   *Choice
		made T
	}
	var last atomic.Pointer[known]
	return func() T {
		now, k := c.Chosen.Load(), last.Load()
		if k == nil || k.of != now {
			k = &known{now, build(cmp.Or(now, new(Choice)))}
			last.Store(k)
		}
		return k.made
	}
}

// Following answers of each stream what say does of the selected one, and follows the streams that come and go. It may
// be asked from any goroutine. A stream that is over, and of which something is still on disk, has the names that its
// resource can be configured by.
func Following[T any](c *Current, say func(*Selected) T) func(*change.Stream) T {
	answers := Derived(c, func(chosen *Choice) map[change.Stream]T {
		all := map[change.Stream]T{}
		for i := range chosen.Streams {
			all[chosen.Streams[i].Stream] = say(&chosen.Streams[i])
		}
		return all
	})
	return func(stream *change.Stream) T {
		if answer, found := answers()[*stream]; found {
			return answer
		}
		return say(&Selected{Stream: *stream, Names: PossibleNames(stream.Resource)})
	}
}

// PossibleNames are those that a configuration can have for the resource, the narrowest first.
func PossibleNames(resource change.Resource) []string {
	names := []string{resource.String(), "*"}
	if resource.Group != "" {
		names = []string{resource.String(), "*." + resource.Group, "*"}
	}
	return names
}

// By finds the streams of which the key is true, and follows those that come and go. It may be asked from any
// goroutine.
func By[K comparable](c *Current, keyOf func(*Selected) K) func(K) []*Selected {
	streams := Derived(c, func(chosen *Choice) map[K][]*Selected {
		all := map[K][]*Selected{}
		for i := range chosen.Streams {
			key := keyOf(&chosen.Streams[i])
			all[key] = append(all[key], &chosen.Streams[i])
		}
		return all
	})
	return func(key K) []*Selected { return streams()[key] }
}

// Current is what is streamed of a cluster now. It may be asked from any goroutine.
type Current struct {
	discovery *source.Discovery
	// Chosen is replaced as a whole when streams come and go.
	Chosen atomic.Pointer[Choice]
}

// Streams are those that are streamed now.
func (c *Current) Streams() []Selected {
	if chosen := c.Chosen.Load(); chosen != nil {
		return chosen.Streams
	}
	return nil
}

// Resolve finds the streams that the configured resources stand for now. Every name that fails is in the error, and
// what can be found is found all the same.
func (c *Current) Resolve(ctx context.Context, server *rest.Config, resources []config.Resource) (*source.Catalog, error) {
	var err error
	if c.discovery, err = source.NewDiscovery(server); err != nil {
		return nil, err
	}
	catalog, err := c.discovery.Read(ctx)
	if err != nil {
		return nil, err
	}
	chosen, errs := Choose(catalog, resources)
	c.Chosen.Store(chosen)
	for i := range errs {
		errs[i] = explain(server.Host, errs[i])
	}
	return catalog, usage.Several("resources", errs...)
}

// explain tells a wrong name, which is the user's, from a server that does not answer.
func explain(host string, err error) error {
	unknown, is := errors.AsType[*source.UnknownResourceError](err)
	switch {
	case err == nil, usage.Is(err):
		return err
	case is && unknown.Cause == nil, !is && errors.As(err, new(*source.UnwatchableError)):
		return usage.Wrap(err)
	}
	return source.ExplainServerError(host, err)
}

// Choice is what the configuration chooses of what an API server serves at one moment.
type Choice struct {
	// Streams, each once: those that are configured by name, then those that a wildcard adds.
	Streams []Selected
	// Others are the streams that other tasks have.
	Others []Selected
	// Left is what is not streamed, resources and names that stand for none, and why.
	Left []source.LeftOut

	// By the name of a resource, without a version: two versions are two forms of the same objects.
	places map[string][]int // of each resource's streams
	twins  map[string]int   // of a stream that has the same objects under another name
}

// catalog is what choose needs of source.Catalog.
type catalog interface {
	Resolve(name string) ([]change.Resource, error)
	Names() []string
	LeftOut(wildcard string) []source.LeftOut
}

// Choose finds the streams that the configured resources stand for. It takes the wildcards last: what is configured by
// name is read as it is configured there. Every entry that is wrong is in the errors, and the choice is without it.
func Choose(served catalog, resources []config.Resource) (*Choice, []error) {
	c := &Choice{places: map[string][]int{}, twins: map[string]int{}}
	errs := contradictions(resources)
	for _, wildcards := range []bool{false, true} {
		for i := range resources {
			entries := config.EntriesOf(resources, resources[i].Name)
			if source.IsWildcard(resources[i].Name) == wildcards && entries[0] == &resources[i] {
				errs = append(errs, c.chooseOne(served, entries)...)
			}
		}
	}
	errs = append(errs, c.differingTasks())
	c.part() // only now: a name, or a twin, keeps a wildcard out in each task
	return c, errs
}

// differingTasks finds a resource that two names give to two tasks.
func (c *Choice) differingTasks() error {
	owners := map[string]int{}
	for _, s := range c.Streams {
		name := s.Stream.Resource.String()
		owner := s.Configured.Owner(name)
		if before, found := owners[name]; found && before != owner {
			return usage.Errorf("resource %q: %s is of task %d by another name, and of task %d here: write the same task", s.Names[0], name, before, owner)
		}
		owners[name] = owner
	}
	return nil
}

// part leaves to others the streams that other tasks have.
func (c *Choice) part() {
	all := c.Streams
	c.Streams = nil
	for _, s := range all {
		if s.Configured.IsOurs(s.Stream.Resource.String()) {
			c.Streams = append(c.Streams, s)
		} else {
			c.Others = append(c.Others, s)
		}
	}
}

// Owner is the task that is to have the resource, by kubectl's full name, where that is another one; 0 is that it is
// ours, or nobody's.
func (c *Current) Owner(resource string) int {
	chosen := c.Chosen.Load()
	if chosen == nil {
		return 0
	}
	at := slices.IndexFunc(chosen.Others, func(s Selected) bool { return s.Stream.Resource.String() == resource })
	if at < 0 {
		return 0
	}
	if of := chosen.Others[at].Configured; !of.IsOurs(resource) {
		return of.Owner(resource)
	}
	return 0 // it waits until the other task has given it away
}

// contradictions finds wildcards that differ about resources which both stand for, whatever is served now: one that is
// installed later must not keep the exporter from its next start.
func contradictions(resources []config.Resource) (errs []error) {
	all := config.EntriesOf(resources, "*")
	for i := range resources {
		group := &resources[i]
		if len(all) == 0 || group == all[0] || !source.IsWildcard(group.Name) || all[0].Excludes(strings.TrimPrefix(group.Name, "*")) {
			continue
		}
		if differ(all[0], group) {
			errs = append(errs, usage.Errorf(`resource %q: "*" stands for the same, with other selectors, namespaces or rules: leave it out there with exclude: [%q]`,
				group.Name, group.Name))
		}
	}
	return errs
}

// differ says whether two entries would stream an object of both in two ways.
func differ(a, b *config.Resource) bool {
	some := change.Resource{Group: "any", Name: "any"}
	for _, one := range streamsOf(some, []*config.Resource{a}) {
		for _, other := range streamsOf(some, []*config.Resource{b}) {
			if overlap(one.Stream.Namespace, other.Stream.Namespace) && !one.isLike(&other) {
				return true
			}
		}
	}
	return false
}

// chooseOne finds the streams of one name.
func (c *Choice) chooseOne(served catalog, entries []*config.Resource) []error {
	for _, configured := range entries {
		if err := cmp.Or(checkSelectors(configured), checkShape(configured)); err != nil {
			return []error{err}
		}
	}
	configured := entries[0]
	found, err := served.Resolve(configured.Name)
	if unknown, is := errors.AsType[*source.UnknownResourceError](err); is {
		unknown.Near = config.Closest(unknown.Name, served.Names())
		if slices.ContainsFunc(entries, func(r *config.Resource) bool { return r.Required }) || !source.IsCustom(configured.Name) {
			c.leave(configured.Name, "the API server serves no such resource")
			return []error{unknown}
		}
		// It may be installed later, and has a stream then.
		c.Left = append(c.Left, source.LeftOut{Name: configured.Name, Reason: unknown.Waits(), Waits: true})
		return nil
	}
	if err != nil {
		return []error{err}
	}
	if source.IsWildcard(configured.Name) {
		c.Left = append(c.Left, served.LeftOut(configured.Name)...)
		c.addWildcard(found, configured)
		return nil
	}
	var errs []error
	for _, resource := range found {
		errs = append(errs, c.add(resource, entries))
	}
	return errs
}

// Waiting are the names of resources that are not served yet.
func (c *Choice) Waiting() []source.LeftOut {
	return slices.DeleteFunc(slices.Clone(c.Left), func(left source.LeftOut) bool { return !left.Waits })
}

// leave notes what is left out and why, once.
func (c *Choice) leave(name, reason string) {
	if !slices.ContainsFunc(c.Left, func(l source.LeftOut) bool { return l.Name == name }) {
		c.Left = append(c.Left, source.LeftOut{Name: name, Reason: reason})
	}
}

// checkSelectors finds what no server would take. Which fields a resource can be selected by, only the server knows.
func checkSelectors(configured *config.Resource) error {
	if _, err := labels.Parse(configured.LabelSelector); err != nil {
		return usage.Errorf("resource %q: labelSelector %q: %w: write it as kubectl does, such as app=web",
			configured.Name, configured.LabelSelector, err)
	}
	if _, err := fields.ParseSelector(configured.FieldSelector); err != nil {
		return usage.Errorf("resource %q: fieldSelector %q: %w: write it as kubectl does, such as metadata.name=web",
			configured.Name, configured.FieldSelector, err)
	}
	return nil
}

// add adds the resource's streams. One that several names stand for is read once.
func (c *Choice) add(resource change.Resource, entries []*config.Resource) error {
	for _, configured := range entries {
		if resource.ClusterScoped && len(configured.Namespaces) > 0 {
			return usage.Errorf("resource %q: it is cluster-scoped and has no namespaces: leave out namespaces %s",
				configured.Name, strings.Join(configured.Namespaces, ", "))
		}
	}
	for _, added := range streamsOf(resource, entries) {
		if err := c.addStream(added); err != nil {
			return err
		}
	}
	return nil
}

// addWildcard adds the streams of what is not configured by its own name. A wildcard may stand for nothing: what it is
// for may come later.
func (c *Choice) addWildcard(found []change.Resource, configured *config.Resource) {
	for _, resource := range found {
		excluded := configured.Excludes(resource.String())
		switch reason := c.refusal(resource, configured); {
		case !excluded && c.joinNamed(resource, configured.Name):
		case excluded && c.has(resource): // by its own name
		case reason != "":
			c.leave(resource.String(), reason)
		default:
			if err := c.add(resource, []*config.Resource{configured}); err != nil { // contradictions have told of it
				c.leave(resource.String(), err.Error())
			}
		}
	}
	if len(found) == 0 {
		c.leave(configured.Name, "it stands for nothing that the API server serves")
	}
}

func (c *Choice) has(resource change.Resource) bool {
	return len(c.places[resource.String()]) > 0
}

// refusal says why the wildcard does not stand for a resource, "" is that it does.
func (c *Choice) refusal(resource change.Resource, configured *config.Resource) string {
	if configured.Excludes(resource.String()) {
		return "excluded by the configuration"
	}
	if resource.ClusterScoped && len(configured.Namespaces) > 0 {
		return "cluster-scoped, and " + configured.Name + " is of namespaces"
	}
	// A stream may have the same objects under another name.
	twin, found := source.Twin(resource)
	if at, isTwin := c.twins[resource.String()]; isTwin {
		twin = c.Streams[at].Stream.Resource
	} else if !found || !c.has(twin) {
		return ""
	}
	return "its objects are those of " + twin.String()
}

// joinNamed makes the streams that are configured by the resource's own name stand for the wildcard, too, and says
// whether there are any.
func (c *Choice) joinNamed(resource change.Resource, wildcard string) bool {
	found := false
	for _, i := range c.places[resource.String()] {
		there := &c.Streams[i]
		if !source.IsWildcard(there.Names[0]) {
			there.Names = append(there.Names, wildcard)
			found = true
		}
	}
	return found
}

func streamsOf(resource change.Resource, entries []*config.Resource) (streams []Selected) {
	for _, part := range config.PartsOf(entries) {
		s := Selected{Stream: change.Stream{Resource: resource, Namespace: part.Namespace}, Names: []string{entries[0].Name}}
		s.configure(part.Entries)
		s.Selection = selectionOf(resource, s.Configured)
		streams = append(streams, s)
	}
	return streams
}

// selectionOf leaves the selecting to the API server, that of namespaces, too.
func selectionOf(resource change.Resource, configured *config.Resource) source.Selection {
	selectors := []string{configured.FieldSelector}
	for _, namespace := range configured.ExcludeNamespaces {
		if !resource.ClusterScoped {
			selectors = append(selectors, fields.OneTermNotEqualSelector("metadata.namespace", namespace).String())
		}
	}
	selectors = slices.DeleteFunc(selectors, func(s string) bool { return s == "" })
	return source.Selection{LabelSelector: configured.LabelSelector, FieldSelector: strings.Join(selectors, ",")}
}

// addStream adds a stream, or its name to the same one. One object in two streams would be delivered twice.
func (c *Choice) addStream(added Selected) error {
	place := added.Stream.Resource.String()
	for _, i := range c.places[place] {
		there := &c.Streams[i]
		if !overlap(there.Stream.Namespace, added.Stream.Namespace) {
			continue
		}
		if !there.isLike(&added) {
			return usage.Errorf("resource %q: %s is configured already as %q, with other selectors, namespaces, rules or version: configure it in one place",
				added.Names[0], added.Stream.Resource, there.Names[0])
		}
		if !slices.Contains(there.Names, added.Names[0]) {
			there.Names = append(there.Names, added.Names[0])
		}
		return nil
	}
	c.places[place] = append(c.places[place], len(c.Streams))
	if twin, found := source.Twin(added.Stream.Resource); found {
		c.twins[twin.String()] = len(c.Streams)
	}
	c.Streams = append(c.Streams, added)
	return nil
}

// isLike says whether both are one stream.
func (s *Selected) isLike(other *Selected) bool {
	return s.Stream == other.Stream && s.Selection == other.Selection && slices.EqualFunc(s.Entries(), other.Entries(), sameShape)
}

func overlap(a, b string) bool { return a == b || a == "" || b == "" }
