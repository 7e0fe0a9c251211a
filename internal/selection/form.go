package selection

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/shape"
	"github.com/kubecdc/kubecdc/internal/transform"
)

// FormOf tells apart what is cut and redacted before an object is kept; nil where none is. Where Events tell of kept
// objects, it also tells apart which objects are: one that is no longer chosen must not come through an Event (I9).
func FormOf(s *Selected, key transform.Key, c *config.Config) ([]byte, error) {
	if !s.keeps() {
		return nil, nil
	}
	var all []any
	var own []transform.Rules
	for _, configured := range s.Special {
		own = append(own, rulesOf(s.Stream.Resource, configured))
		all = append(all, selects(configured), own[len(own)-1])
	}
	own = append(own, rulesOf(s.Stream.Resource, s.Configured))
	all = append(all, own[len(own)-1], KeepOf(s.Configured), key.Form(own...))
	if toldByEvents(c.Resources) {
		all = append(all, choices(s.Entries(), c.Sinks))
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("describe what is cut and redacted of %s: %w", s.Stream, err)
	}
	form := sha256.Sum256(text) // the key is in it, and cannot be read out of it
	return form[:], nil
}

// TodayOf is how the stream's objects are cut and redacted now, with what is cut while they are read.
func TodayOf(s *Selected, key transform.Key, sinks ...transform.Rules) (*shape.Today, error) {
	today, err := todayOf(s, key, sinks...)
	if err == nil {
		today.Actors, today.Changes = s.Configured.Actor, s.Configured.Changes
	}
	return today, err
}

func todayOf(s *Selected, key transform.Key, sinks ...transform.Rules) (*shape.Today, error) {
	if len(s.Special) == 0 {
		return shape.NewToday(wholeRules(s.Stream.Resource, s.Configured), key, sinks...)
	}
	var entries []shape.Entry
	for _, configured := range s.Entries() {
		entries = append(entries, shape.Entry{
			Rules: wholeRules(s.Stream.Resource, configured), For: selects(configured), Takes: configured.TakesNamespace,
		})
	}
	return shape.NewTodayOf(entries, key, sinks...)
}

// selects is what a special entry is for.
func selects(configured *config.Resource) string {
	text, err := json.Marshal([]any{configured.Namespaces, configured.ExcludeNamespaces, configured.LabelSelector})
	if err != nil { // texts alone can always be written
		panic(fmt.Sprintf("describe an entry of %s: %v", configured.Name, err))
	}
	return string(text)
}

// wholeRules are those of the entry, with what is cut while its objects are read.
func wholeRules(resource change.Resource, configured *config.Resource) transform.Rules {
	rules, keep := rulesOf(resource, configured), KeepOf(configured)
	if !keep.ManagedFields {
		rules = rules.Join(transform.Rules{Drop: []string{".metadata.managedFields"}})
	}
	if !keep.LastApplied {
		rules = rules.Join(transform.Rules{Drop: []string{transform.LastApplied}})
	}
	return rules
}
