package cluster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/selection"
)

// WantedBy says which streams the sink takes; nil is all.
func (c *Cluster) WantedBy(s *config.Sink) func(*change.Stream) bool {
	if len(s.Resources) == 0 {
		return nil
	}
	wants := selection.Following(&c.Current, func(chosen *selection.Selected) bool {
		return slices.ContainsFunc(chosen.Names, func(name string) bool { return slices.Contains(s.Resources, name) })
	})
	return func(stream *change.Stream) bool {
		if stream.IsActors() {
			return s.Actors
		}
		return wants(stream)
	}
}

// Named are the streams with all that they may be called.
func (c *Cluster) Named() []control.Stream {
	var named []control.Stream
	for _, s := range c.Streams() {
		r := s.Stream.Resource
		kind := strings.ToLower(r.Kind)
		alias := []string{kind}
		if r.Group != "" {
			alias = append(alias, kind+"."+r.Group, r.Name+"."+r.Version+"."+r.Group)
		}
		for _, name := range s.Names {
			alias = append(alias, strings.ToLower(name))
		}
		named = append(named, control.Stream{Name: s.Stream.String(), Alias: alias})
	}
	return named
}

// TakenBy are those of the streams that any of the named sinks takes.
func (c *Cluster) TakenBy(configured []config.Sink, sinks, streams []string) []string {
	taken := map[string]bool{}
	for i := range configured {
		if !slices.Contains(sinks, configured[i].Name) {
			continue
		}
		wants := c.WantedBy(&configured[i])
		for _, s := range c.Streams() {
			if wants == nil || wants(&s.Stream) {
				taken[s.Stream.String()] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(streams), func(name string) bool { return !taken[name] })
}

// Called are the streams that --resources names.
func (c *Cluster) Called(resources []string) ([]selection.Selected, error) {
	names, err := control.Resolve(c.Named(), resources)
	if err != nil {
		return nil, fmt.Errorf("--resources: %w", err)
	}
	var streams []selection.Selected
	for _, s := range c.Streams() {
		if slices.Contains(names, s.Stream.String()) {
			streams = append(streams, s)
		}
	}
	return streams, nil
}

// Reached are those of the streams that may have objects within the limits.
func (c *Cluster) Reached(names []string, l change.Limits) ([]string, error) {
	var reached []string
	for _, s := range c.Streams() {
		for _, name := range names {
			if name == s.Stream.String() && l.Reach(&s.Stream) {
				reached = append(reached, name)
			}
		}
	}
	if len(reached) == 0 {
		return nil, &control.RefusedError{Text: fmt.Sprintf("%s: nothing of it is streamed of namespace %s", strings.Join(names, ", "), l.Namespace)}
	}
	return reached, nil
}

// StreamsThat are those of the present streams that are so.
func (c *Cluster) StreamsThat(are func(*selection.Selected) bool) (some []selection.Selected) {
	streams := c.Streams()
	for i := range streams {
		if are(&streams[i]) {
			some = append(some, streams[i])
		}
	}
	return some
}
