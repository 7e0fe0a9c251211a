package selection

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/involved"
	"github.com/kubecdc/kubecdc/internal/shape"
)

// InvolveOf adds to a record of the stream, if that is of Events, what is known of the object that it is about; nil
// adds nothing.
func InvolveOf(s *Selected, c *Current, kept involved.Objects) func(*change.Record) error {
	if !s.involves() {
		return nil
	}
	finder := involved.Finder{Objects: kept, Streams: keptStreams(c), Fields: slices.Compact(slices.Sorted(slices.Values(s.Configured.Involved)))}
	return func(rec *change.Record) (err error) {
		rec.Involved, err = finder.Find(rec)
		return err
	}
}

func (s *Selected) involves() bool {
	return len(s.Configured.Involved) > 0 && involved.IsEvents(&s.Stream.Resource)
}

// keptStreams are those of a kind whose objects are kept, without Events, as in config.Involvable: nothing would hold
// what Events tell of each other to the rules of today (I9).
func keptStreams(c *Current) func(involved.Kind) []*change.Stream {
	all := by(c, func(s *Selected) involved.Kind {
		if s.Configured == nil || !s.keeps() || involved.IsEvents(&s.Stream.Resource) {
			return involved.Kind{}
		}
		return involved.Kind{Group: s.Stream.Resource.Group, Kind: s.Stream.Resource.Kind}
	})
	return func(kind involved.Kind) (streams []*change.Stream) {
		for _, s := range all(kind) {
			streams = append(streams, &s.Stream)
		}
		return streams
	}
}

// toldByEvents says whether Events tell of other objects.
func toldByEvents(resources []config.Resource) bool {
	return slices.ContainsFunc(resources, func(r config.Resource) bool { return len(r.Involved) > 0 })
}

// choices say which objects the entries choose. Where something in a resource is left out by what changes, also which
// sinks there are: a new one was never told of an object that is left out now.
func choices(entries []*config.Resource, sinks []config.Sink) (all []any) {
	leavesOut := false
	for _, r := range entries {
		all = append(all, []any{r.Name, r.Namespaces, r.ExcludeNamespaces, r.Exclude, r.LabelSelector, r.FieldSelector, r.Ops, r.Filter})
		leavesOut = leavesOut || r.Filter != "" || len(r.Ops) > 0
	}
	for i := range sinks {
		if s := &sinks[i]; leavesOut {
			all = append(all, []any{s.Name, s.Resources})
		}
	}
	return all
}

// AddInvolved makes the form of the stream's records on disk, if that is of Events, also that of the rules of all
// objects that they may tell of (I9).
func AddInvolved(today *shape.Today, s *Selected, c *config.Config) error {
	if !s.involves() {
		return nil
	}
	kept := config.Involvable(c.Resources)
	all := []any{s.Configured.Involved, choices(kept, c.Sinks)}
	for _, r := range kept {
		all = append(all, rules(r), r.Redact.None, r.Keep)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("describe what events may tell of other objects: %w", err)
	}
	today.Involving(text)
	return nil
}
