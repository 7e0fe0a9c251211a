package selection

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/shape"
	"github.com/kubecdc/kubecdc/internal/transform"
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
			Ops: configured.Ops, Filter: configured.Filter, WithholdFailed: configured.WithholdsFailed(),
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

func inBoth(a, b []string) (both []string) {
	for _, path := range a {
		if slices.Contains(b, path) {
			both = append(both, path)
		}
	}
	return both
}
