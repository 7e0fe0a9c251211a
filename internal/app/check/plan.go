package check

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/selection"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/source"
)

// most is how many names of streams and of namespaces a line has.
const most = 5

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
		for _, line := range append(keys, planSink(saved, s, cfg, c.Taken(s))...) {
			if !slices.Contains(lines, line) { // several sinks may have it
				lines = append(lines, line)
			}
		}
		differ = differ || differs
	}
	lines = append(lines, goes(saved, c)...)
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

// goes is what other tasks are to have from now on.
func goes(saved *control.State, c *cluster.Cluster) (lines []string) {
	to := map[int][]string{}
	for stream, of := range saved.Streams {
		if task := c.Owner(stream[strings.Index(stream, "/")+1:]); task != 0 && len(of.Sinks) > 0 {
			to[task] = append(to[task], stream)
		}
	}
	for _, task := range slices.Sorted(maps.Keys(to)) {
		slices.Sort(to[task])
		lines = append(lines, fmt.Sprintf("task %d is to have %s: it goes on there, from what is saved here", task, usage.Some(to[task], most)))
	}
	return lines
}

// planSink is the plan for one sink, which takes the streams.
func planSink(saved *control.State, s *config.Sink, cfg *config.Config, streams []selection.Selected) []string {
	has := map[string]control.SinkState{} // by the name of the stream
	for stream, of := range saved.Streams {
		if at, is := of.Sinks[s.Name]; is {
			has[stream] = at
		}
	}
	if len(has) == 0 && len(streams) > 0 {
		return []string{fmt.Sprintf("sink %s is new: it gets all objects of %s", s.Name, usage.Some(selection.NamesOf(streams), most))}
	}
	// The sink may take a resource that is not served now: it goes on when it is, or is told that the objects are gone.
	stays := func(name string) bool {
		plural, group, _ := strings.Cut(name, ".")
		resource := change.Resource{Group: group, Name: plural}
		serves := func(s selection.Selected) bool { return s.Stream.Resource.String() == name }
		takes := func(r config.Resource) bool {
			stands := strings.EqualFold(r.Name, name) || source.Covers(r.Name, resource) && !r.Excludes(name)
			return stands && (len(s.Resources) == 0 || slices.Contains(s.Resources, r.Name))
		}
		return !slices.ContainsFunc(streams, serves) && slices.ContainsFunc(cfg.Resources, takes)
	}
	lines := append(begins(has, streams, cfg.Task.Count > 0), leaves(has, streams, stays, s.OnLeave == "delete")...)
	for i := range lines {
		lines[i] = "sink " + s.Name + " " + lines[i]
	}
	return lines
}

// begins is what a sink that has some streams is told of those that it takes, which other tasks may have.
func begins(has map[string]control.SinkState, streams []selection.Selected, tasks bool) (lines []string) {
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
	anew := "has nothing of %s yet: it gets all objects"
	if tasks {
		anew += ", or what has changed if another task has them"
	}
	for _, told := range []struct {
		format  string
		streams []string
	}{
		{anew, begin},
		{"is given %s in all namespaces now: it gets what it lacks", widened},
		{"is given %s again: it gets what it lacks", back},
		{"is given %s by another selector: it gets a gap, what enters as replaced, and what leaves as deleted", chosen},
	} {
		if len(told.streams) > 0 {
			lines = append(lines, fmt.Sprintf(told.format, usage.Some(told.streams, most)))
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
			lines = append(lines, fmt.Sprintf("is given %s in %s only: the objects of other namespaces %s", stream, usage.Some(parts[resource], most), end))
		default:
			lines = append(lines, fmt.Sprintf("is not given %s any more: %s %s", stream, objects, end))
		}
	}
	return lines
}

// recorded is what a state remembers of the configuration with which a sink was opened: a hash of each value that its
// consumers see, by its key. Who reads the state can check a guess of a value, and read none.
type recorded struct {
	Kind    string                       `json:"kind"`
	Keys    map[string]string            `json:"keys"`    // of the sink, and of the whole configuration
	Streams map[string]map[string]string `json:"streams"` // of those that it takes
	Sinks   []string                     `json:"sinks"`   // all names
}

// Record is what the next start compares the sink's configuration with, as JSON.
func Record(c *cluster.Cluster, cfg *config.Config, s *config.Sink) ([]byte, error) {
	return json.Marshal(recordOf(c, cfg, s))
}

func recordOf(c *cluster.Cluster, cfg *config.Config, s *config.Sink) *recorded {
	r := &recorded{Kind: s.Kind(), Keys: map[string]string{}, Streams: map[string]map[string]string{}, Sinks: cfg.SinkNames()}
	hash := func(into map[string]string, all []config.Effect) {
		for _, e := range all {
			if e.Value != nil {
				mac := hmac.New(sha256.New, []byte(c.UID+"/"+s.Name+"/"+e.Key))
				mac.Write(e.Value)
				into[e.Key] = hex.EncodeToString(mac.Sum(nil)[:6])
			}
		}
	}
	hash(r.Keys, append(config.Effects(cfg), config.Effects(s)...))
	streams := c.Taken(s)
	for i := range streams {
		keys := map[string]string{}
		hash(keys, effectsOf(&streams[i]))
		r.Streams[streams[i].Stream.String()] = keys
	}
	return r
}

// effectsOf are those of the entries that are for the stream: a value of several is all of theirs, with what each is
// for.
func effectsOf(s *selection.Selected) []config.Effect {
	all := config.Effects(s.Configured)
	if len(s.Special) == 0 {
		return all
	}
	values := make([][]string, len(all))
	for _, entry := range s.Entries() {
		for i, e := range config.Effects(entry) {
			if e.Value != nil {
				values[i] = append(values[i], selection.Selects(entry)+string(e.Value))
			}
		}
	}
	for i := range all {
		if all[i].Value = nil; values[i] != nil {
			slices.Sort(values[i])
			all[i].Value = fmt.Appendf(nil, "%q", values[i])
		}
	}
	return all
}

// since says in one line each what consumers see of the keys that have another value than when the sink was opened
// last, none where that is not known, and whether anything differs.
func since(before []byte, c *cluster.Cluster, cfg *config.Config, s *config.Sink) (lines []string, differs bool) {
	var was recorded
	if json.Unmarshal(before, &was) != nil { // there is none
		return nil, true
	}
	is := recordOf(c, cfg, s)
	if was.Kind != is.Kind {
		return []string{fmt.Sprintf("sink %s was of kind %s and is of kind %s: the start is refused; give it another name", s.Name, was.Kind, is.Kind)}, true
	}
	for _, e := range config.Effects(cfg) {
		if was.Keys[e.Key] != is.Keys[e.Key] {
			lines = append(lines, fmt.Sprintf("%s has another value: %s", e.Key, e.Text))
		}
	}
	for _, e := range config.Effects(s) {
		if was.Keys[e.Key] != is.Keys[e.Key] {
			lines = append(lines, fmt.Sprintf("sink %s: %s has another value: %s", s.Name, e.Key, e.Text))
		}
	}
	for _, e := range config.Effects(new(config.Resource)) {
		var of []string
		for _, stream := range slices.Sorted(maps.Keys(is.Streams)) {
			if had, known := was.Streams[stream]; known && had[e.Key] != is.Streams[stream][e.Key] {
				of = append(of, stream)
			}
		}
		if of != nil {
			lines = append(lines, fmt.Sprintf("%s of %s has another value: %s", e.Key, usage.Some(of, most), e.Text))
		}
	}
	return lines, !reflect.DeepEqual(&was, is)
}
