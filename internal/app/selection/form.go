package selection

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/shape"
	"github.com/kubecdc/kubecdc/internal/shape/involved"
	"github.com/kubecdc/kubecdc/internal/shape/transform"
	"github.com/kubecdc/kubecdc/internal/source"
)

// FormOf tells apart what is cut and redacted before an object is kept; nil where none is. Where Events tell of kept
// objects, it also tells apart which objects are: one that is no longer chosen must not come through an Event (I9).
func FormOf(s *Selected, key transform.Key, c *config.Config) ([]byte, error) {
	if !s.Configured.IsKept() {
		return nil, nil
	}
	var all []any
	var own []transform.Rules
	for _, configured := range s.Special {
		own = append(own, rulesOf(s.Stream.Resource, configured))
		all = append(all, Selects(configured), own[len(own)-1])
	}
	own = append(own, rulesOf(s.Stream.Resource, s.Configured))
	all = append(all, own[len(own)-1], KeepOf(s.Configured), key.Form(own...))
	if slices.ContainsFunc(c.Resources, func(r config.Resource) bool { return len(r.Involved) > 0 }) { // Events tell of objects
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
	var entries []shape.Entry
	for _, configured := range s.Entries() {
		rules, keep := rulesOf(s.Stream.Resource, configured), KeepOf(configured)
		if !keep.ManagedFields {
			rules = rules.Join(transform.Rules{Drop: []string{".metadata.managedFields"}})
		}
		if !keep.LastApplied {
			rules = rules.Join(transform.Rules{Drop: []string{transform.LastApplied}})
		}
		e := shape.Entry{Rules: rules}
		if len(s.Special) > 0 {
			e.For, e.Takes = Selects(configured), configured.TakesNamespace
		}
		entries = append(entries, e)
	}
	today, err := shape.NewToday(entries, key, sinks...)
	if err == nil {
		today.Actors, today.Changes = s.Configured.Actor, s.Configured.Changes
	}
	return today, err
}

// Selects is what a special entry is for.
func Selects(configured *config.Resource) string {
	text, err := json.Marshal([]any{configured.Namespaces, configured.ExcludeNamespaces, configured.LabelSelector})
	if err != nil { // texts alone can always be written
		panic(fmt.Sprintf("describe an entry of %s: %v", configured.Name, err))
	}
	return string(text)
}

// InvolveOf adds to a record of the stream, if that is of Events, what is known of the object that it is about; nil
// adds nothing.
func InvolveOf(
	s *Selected, c *Current, images func(*change.Stream, change.Key) (change.Images, error),
) func(*change.Record) error {
	if !s.involves() {
		return nil
	}
	finder := involved.Finder{Images: images, Streams: keptStreams(c), Fields: slices.Compact(slices.Sorted(slices.Values(s.Configured.Involved)))}
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
	all := By(c, func(s *Selected) involved.Kind {
		if s.Configured == nil || !s.Configured.IsKept() || involved.IsEvents(&s.Stream.Resource) {
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

// WasServed says whether nothing is wrong but names that the state knows as those of streams: their resources vanished
// while nobody looked, or will be back.
func WasServed(ctx context.Context, cfg *config.Config, err error) bool {
	var names []string
	for _, one := range usage.Each(err) {
		unknown, is := errors.AsType[*source.UnknownResourceError](one)
		if !is {
			return false
		}
		names = append(names, unknown.Name)
	}
	store, openErr := checkpoint.Open(ctx, cfg.State.Dir, checkpoint.Options{ReadOnly: true})
	if openErr != nil {
		return false // who opens it next will say why
	}
	lacks := slices.ContainsFunc(names, func(name string) bool { return !knows(store, name, cfg) })
	return store.Close() == nil && !lacks
}

// knows says whether the state has a stream of the configured resource.
func knows(store *checkpoint.Store, name string, cfg *config.Config) bool {
	for i := range cfg.Resources {
		if cfg.Resources[i].Name != name {
			continue
		}
		for _, namespace := range append(slices.Clone(cfg.Resources[i].Namespaces), "") {
			stream := strings.TrimPrefix(namespace+"/"+name, "/")
			if _, found, err := store.Resource(stream); err == nil && found {
				return true
			}
		}
	}
	return false
}

// SourceOf makes the informer the pipeline's source of the stream.
func SourceOf(stream change.Stream, informer *source.SharedInformer) pipeline.Source {
	return pipeline.Source{
		Stream: stream, Run: informer.Run, Join: informer.Join, Ask: informer.Ask, Withdraw: informer.Withdraw, IsApart: informer.IsApart,
	}
}
