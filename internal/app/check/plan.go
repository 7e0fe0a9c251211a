package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/selection"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/source"
)

// Plan says in one line each what the next start changes for the consumers of the sinks, since another configuration
// has saved the state: what is told from its beginning, what is compared again, what stays behind, and what another
// value of a key does. It asks nobody.
func Plan(saved *control.State, c *cluster.Cluster, cfg *config.Config) []string {
	if saved == nil || saved.Cluster != c.Name || len(saved.Streams) == 0 {
		return nil // the first start, or one that is refused
	}
	var lines []string
	differ := false
	configured := map[string]bool{}
	for i := range cfg.Sinks {
		s := &cfg.Sinks[i]
		configured[s.Name] = true
		keys, differs := since(saved.Configurations[s.Name], c, cfg, s)
		for _, line := range append(keys, planSink(saved, s, cfg.Resources, taken(c, s))...) {
			if !slices.Contains(lines, line) { // several sinks may have it
				lines = append(lines, line)
			}
		}
		differ = differ || differs
	}
	if !differ {
		return lines // what has left has done so at an earlier start
	}
	left := map[string]bool{}
	for _, stream := range saved.Streams {
		for name := range stream.Sinks {
			left[name] = !configured[name]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		if left[name] {
			lines = append(lines, fmt.Sprintf("sink %s is not configured any more: its log stays as it is; exporter checkpoint forget-sink gives up what is saved of it", name))
		}
	}
	return lines
}

// planSink is the plan for one sink, which takes the streams of the resources.
func planSink(saved *control.State, s *config.Sink, resources []config.Resource, streams []selection.Selected) []string {
	has := map[string]control.SinkState{} // by the name of the stream
	for stream, of := range saved.Streams {
		if at, is := of.Sinks[s.Name]; is {
			has[stream] = at
		}
	}
	if len(has) == 0 && len(streams) > 0 {
		var names []string
		for i := range streams {
			names = append(names, streams[i].Stream.String())
		}
		return []string{fmt.Sprintf("sink %s is new: it gets all objects of %s", s.Name, several(names))}
	}
	stays := func(resource string) bool {
		serves := func(s selection.Selected) bool { return s.Stream.Resource.String() == resource }
		return !slices.ContainsFunc(streams, serves) && takesUnserved(s, resources, resource)
	}
	lines := append(begins(has, streams), leaves(has, streams, stays, s.OnLeave == "delete")...)
	for i := range lines {
		lines[i] = "sink " + s.Name + " " + lines[i]
	}
	return lines
}

// begins is what a sink that has some streams is told of those that it takes.
func begins(has map[string]control.SinkState, streams []selection.Selected) (lines []string) {
	var begin, widened, back, chosen []string
	parts := map[string]bool{} // resources of which it has one namespace
	for name := range has {
		if _, resource, named := strings.Cut(name, "/"); named {
			parts[resource] = true
		}
	}
	for i := range streams {
		stream := &streams[i].Stream
		resource, name := stream.Resource.String(), stream.String()
		at, is := has[name]
		_, isPart := has[resource]
		switch {
		case is && at.Selector != streams[i].Selection.String():
			chosen = append(chosen, name)
		case is && at.Comparing == change.Left:
			back = append(back, name)
		case is, isPart: // it goes on
		case stream.Namespace == "" && parts[resource]:
			widened = append(widened, name)
		default:
			begin = append(begin, name)
		}
	}
	for _, told := range []struct {
		format  string
		streams []string
	}{
		{"has nothing of %s yet: it gets all objects", begin},
		{"is given %s in all namespaces now: it gets what it lacks", widened},
		{"is given %s again: it gets what it lacks", back},
		{"is given %s by another selector: it gets a gap, what enters as replaced, and what leaves as deleted", chosen},
	} {
		if len(told.streams) > 0 {
			lines = append(lines, fmt.Sprintf(told.format, several(told.streams)))
		}
	}
	return lines
}

// leaves is what becomes of what a sink has of streams that it does not take any more. Left out is what stays is true
// for, and what an earlier start has told the sink.
func leaves(has map[string]control.SinkState, streams []selection.Selected, stays func(resource string) bool, deletes bool) (lines []string) {
	takes, parts := map[string]bool{}, map[string][]string{} // the latter are namespaces, by resource
	for i := range streams {
		stream := &streams[i].Stream
		if takes[stream.String()] = true; stream.Namespace != "" {
			parts[stream.Resource.String()] = append(parts[stream.Resource.String()], stream.Namespace)
		}
	}
	end := "stay as they are, and a gap says so; onLeave: delete would end them"
	if deletes {
		end = "are deleted there"
	}
	for _, stream := range slices.Sorted(maps.Keys(has)) {
		resource, at := stream[strings.Index(stream, "/")+1:], has[stream]
		objects := "its objects"
		if at.Objects != control.Uncounted {
			objects = fmt.Sprintf("its objects (%d)", at.Objects)
		}
		isTold := at.Comparing == change.Left && !deletes
		switch {
		case takes[stream], takes[resource], stays(resource), at.Objects == 0, isTold:
		case stream == resource && parts[resource] != nil:
			lines = append(lines, fmt.Sprintf("is given %s in %s only: the objects of other namespaces %s", stream, several(parts[resource]), end))
		default:
			lines = append(lines, fmt.Sprintf("is not given %s any more: %s %s", stream, objects, end))
		}
	}
	return lines
}

// takesUnserved says whether the sink takes a resource that is not served now: it goes on when it is, or is told that
// the objects are gone.
func takesUnserved(s *config.Sink, resources []config.Resource, name string) bool {
	plural, group, _ := strings.Cut(name, ".")
	resource := change.Resource{Group: group, Name: plural}
	return slices.ContainsFunc(resources, func(r config.Resource) bool {
		stands := strings.EqualFold(r.Name, name) || source.Covers(r.Name, resource) && !r.Excludes(name)
		return stands && (len(s.Resources) == 0 || slices.Contains(s.Resources, r.Name))
	})
}
