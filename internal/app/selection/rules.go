package selection

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/shape"
	"github.com/kubecdc/kubecdc/internal/shape/transform"
	"github.com/kubecdc/kubecdc/internal/source"
)

// Entries are those that say what becomes of the stream's records; the first counts that takes an object.
func (s *Selected) Entries() []*config.Resource {
	return append(slices.Clone(s.Special), s.Configured)
}

func (s *Selected) configure(entries []*config.Resource) {
	last := len(entries) - 1
	s.Special, s.Configured = entries[:last:last], entries[last]
}

// Configure gives a stream that is not streamed now, and has no entries, those of the name.
func (s *Selected) Configure(resources []config.Resource, name string) {
	if entries := config.EntriesOf(resources, name); len(entries) > 0 && s.Configured == nil {
		s.configure(entries)
	}
}

// TellsDeletes says whether no entry of the stream keeps a delete back.
func (s *Selected) TellsDeletes() bool {
	return !slices.ContainsFunc(s.Entries(), func(r *config.Resource) bool {
		return r.Filter != "" || len(r.Ops) > 0 && !slices.Contains(r.Ops, change.Deleted.String())
	})
}

// ShapeOf is what the stream does with its records; nil is nothing.
func ShapeOf(s *Selected, key transform.Key, failed func(*change.Record, error)) (func(*change.Record), error) {
	made, err := shapeOf(s, func(configured *config.Resource) shape.Options {
		return shape.Options{
			Ops: configured.Ops, Filter: configured.Filter, WithholdFailed: configured.FilterFailure == "deadletter",
			Before: configured.Before, Rules: rulesOf(s.Stream.Resource, configured), Key: key, Failed: failed,
		}
	})
	if made == nil || err != nil {
		return nil, err
	}
	return made.Apply, nil
}

// FilterOf is what the stream's entries keep back of its records, without their cuts; nil is nothing. Nobody is told of
// a filter that fails.
func FilterOf(s *Selected) (*shape.Shape, error) {
	return shapeOf(s, func(configured *config.Resource) shape.Options {
		return shape.Options{Ops: configured.Ops, Filter: configured.Filter, Before: configured.Before, Failed: func(*change.Record, error) {}}
	})
}

// AsksBefore says whether a filter of the stream may look at the object as it was, which nobody has any more.
func (s *Selected) AsksBefore() bool {
	return slices.ContainsFunc(s.Entries(), func(r *config.Resource) bool { return strings.Contains(r.Filter, "oldObject") })
}

// AsksNamespace says whether a filter of the stream may look at the object's namespace.
func (s *Selected) AsksNamespace() bool {
	return slices.ContainsFunc(s.Entries(), func(r *config.Resource) bool { return config.AsksNamespace(r.Filter) })
}

// shapeOf is what the options of all entries make of the stream's records; nil is nothing.
func shapeOf(s *Selected, of func(*config.Resource) shape.Options) (*shape.Shape, error) {
	if len(s.Special) == 0 {
		return shape.New(of(s.Configured))
	}
	var parts []shape.Part
	for _, configured := range s.Entries() {
		made, err := shape.New(of(configured))
		if err != nil {
			return nil, err
		}
		matches, err := matchesOf(configured)
		if err != nil {
			return nil, err
		}
		parts = append(parts, shape.Part{Takes: configured.TakesNamespace, Matches: matches, Shape: made})
	}
	return shape.Of(parts...), nil
}

// matchesOf is nil where the entry is for any labels.
func matchesOf(configured *config.Resource) (func(shape.Labels) bool, error) {
	selector, err := labels.Parse(configured.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("parse labelSelector %q of %s: %w", configured.LabelSelector, configured.Name, err)
	}
	if selector.Empty() {
		return nil, nil
	}
	return func(of shape.Labels) bool { return selector.Matches(objectLabels(of)) }, nil
}

// objectLabels are an object's labels as selectors ask for them.
type objectLabels shape.Labels

// Has says whether the object has the label.
func (l objectLabels) Has(key string) bool {
	_, found := l(key)
	return found
}

// Get is the label's value, "" where it is missing.
func (l objectLabels) Get(key string) string {
	value, _ := l(key)
	return value
}

// Lookup is the label's value, and whether there is one.
func (l objectLabels) Lookup(key string) (value string, found bool) { return l(key) }

// CommonRules are the cuts and hashes that all objects of the streams go through, and whether they have managedFields.
func CommonRules(streams []Selected) (common transform.Rules, managedFields bool) {
	first := true
	for i := range streams {
		for _, configured := range streams[i].Entries() {
			managedFields = managedFields || KeepOf(configured).ManagedFields
			rules := rulesOf(streams[i].Stream.Resource, configured)
			if first {
				common, first = rules, false
				continue
			}
			if common.Drop, common.Redact = inBoth(common.Drop, rules.Drop), inBoth(common.Redact, rules.Redact); !slices.Equal(common.Keep, rules.Keep) {
				common.Keep = nil
			}
		}
	}
	return common, managedFields
}

func inBoth(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(path string) bool { return !slices.Contains(b, path) })
}

// SinkRules are what the sink cuts and redacts beside its resources.
func SinkRules(s *config.Sink, resources []config.Resource) transform.Rules {
	return withKept(transform.Rules{Drop: s.Drop, Keep: s.Only, Redact: s.Redact}, resources...)
}

// ShapeForSink is what the sink makes of the records of its resources; nil leaves them as they are.
func ShapeForSink(c *config.Config, s *config.Sink, key transform.Key, failed func(*change.Record, error)) (*shape.Shape, error) {
	made, err := shape.New(shape.Options{
		Ops: s.Ops, Filter: s.Filter, Before: areKept(c.Resources, s), Rules: SinkRules(s, c.Resources), Key: key, Failed: failed,
	})
	if err != nil {
		return nil, usage.Errorf("sink %q: %w", s.Name, err)
	}
	return made, nil
}

// CheckSinkRules finds an expression or a path of a sink that cannot be parsed.
func CheckSinkRules(c *config.Config, s *config.Sink) error {
	_, err := ShapeForSink(c, s, transform.Key{Secret: []byte("any")}, nil)
	return err
}

// areKept says whether the objects of all resources that the sink takes are kept. What is chosen by name counts for a
// wildcard, too.
func areKept(resources []config.Resource, s *config.Sink) bool {
	all := len(s.Resources) == 0 || slices.ContainsFunc(s.Resources, source.IsWildcard)
	return !slices.ContainsFunc(resources, func(r config.Resource) bool {
		return !r.Before && (all || slices.Contains(s.Resources, r.Name))
	})
}

// checkShape finds an expression, a path or a pattern that cannot be parsed.
func checkShape(configured *config.Resource) error {
	options := shape.Options{Filter: configured.Filter, Before: configured.Before, Rules: rules(configured), Key: transform.Key{Secret: []byte("any")}}
	if _, err := shape.New(options); err != nil {
		return usage.Errorf("resource %q: %w", configured.Name, err)
	}
	if _, err := shape.Ignoring(Ignored(change.Resource{}, configured)); err != nil {
		return usage.Errorf("resource %q: ignore %w", configured.Name, err)
	}
	return nil
}

// rules are the cuts and hashes that are configured for a resource.
func rules(configured *config.Resource) transform.Rules {
	own := transform.Rules{Drop: configured.Drop, Keep: configured.Only, Redact: configured.Redact.Paths, Env: configured.RedactEnv}
	return withKept(own, *configured)
}

// withKept are the rules with what the resources keep, which repeats the object. The rules are for that, too.
func withKept(own transform.Rules, resources ...config.Resource) transform.Rules {
	own.Applied = !own.Empty() && slices.ContainsFunc(resources, func(r config.Resource) bool { return KeepOf(&r).LastApplied })
	own.Managed = !own.Empty() && slices.ContainsFunc(resources, func(r config.Resource) bool { return KeepOf(&r).ManagedFields })
	return own
}

// rulesOf are those of the entry for objects of the resource. Values of Secrets become hashes, unless redact is none
// (I9).
func rulesOf(resource change.Resource, configured *config.Resource) transform.Rules {
	if resource.String() == "secrets" && !configured.Redact.None {
		return transform.Secrets().Join(rules(configured))
	}
	return rules(configured)
}

// KeepOf is what is kept of what is cut otherwise while objects are read.
func KeepOf(configured *config.Resource) source.Keep {
	return source.Keep{
		ManagedFields: slices.Contains(configured.Keep, config.KeepManagedFields),
		LastApplied:   slices.Contains(configured.Keep, config.KeepLastApplied),
		Actor:         configured.Actor,
	}
}

// sameShape says whether two entries of the configuration do the same with an object.
func sameShape(a, b *config.Resource) bool {
	x, y := *a, *b
	for _, r := range []*config.Resource{&x, &y} {
		// of the selection, which is compared, too
		r.Name, r.Namespaces, r.Exclude, r.ExcludeNamespaces, r.Required = "", nil, nil, nil, false
	}
	return reflect.DeepEqual(x, y)
}

// IgnoreOf says of an update whether it differs from what was told last in nothing that matters; nil ignores none.
func IgnoreOf(s *Selected) (func(*change.Record) bool, error) {
	if len(s.Configured.Ignore) == 0 {
		return nil, nil
	}
	return shape.Ignoring(Ignored(s.Stream.Resource, s.Configured))
}

// Ignored are the paths that the entry ignores in objects of the resource. With the zero resource they are those that
// the entry names itself.
func Ignored(resource change.Resource, configured *config.Resource) (paths []string) {
	for _, text := range configured.Ignore {
		if text == config.IgnoreHeartbeats {
			paths = append(paths, heartbeats(resource)...)
		} else {
			paths = append(paths, text)
		}
	}
	return paths
}

// heartbeats are what changes in objects of the resource although nothing happens.
func heartbeats(resource change.Resource) []string {
	switch resource.String() {
	case "nodes":
		return []string{".status.conditions[*].lastHeartbeatTime"}
	case "pods":
		return []string{".status.conditions[*].lastProbeTime"}
	case "leases.coordination.k8s.io":
		return []string{".spec.renewTime"}
	case "endpoints", "endpointslices.discovery.k8s.io":
		return []string{".metadata.annotations['endpoints.kubernetes.io/last-change-trigger-time']"}
	}
	return nil
}

// Selected is one stream and where it came from.
type Selected struct {
	Stream    change.Stream
	Selection source.Selection
	Names     []string // the configured names that stand for it
	// Configured is the entry of the configuration that chooses its objects, and says what becomes of the records of
	// those that no special one takes.
	Configured *config.Resource
	Special    []*config.Resource // the entries before it of the same name; the first counts that takes an object
}

// NamesOf are the names of the streams.
func NamesOf(streams []Selected) (names []string) {
	for i := range streams {
		names = append(names, streams[i].Stream.String())
	}
	return names
}

// IsNamed says whether a configured name stands for this stream alone, and no wildcard found it.
func (s *Selected) IsNamed() bool {
	return slices.ContainsFunc(s.Names, func(name string) bool { return !source.IsWildcard(name) })
}
