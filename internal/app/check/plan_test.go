package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/selection"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/source"
)

// served is an API server that serves the resources.
type served []change.Resource

func everything() served {
	return served{
		{Version: "v1", Name: "pods", Kind: "Pod"}, {Version: "v1", Name: "configmaps", Kind: "ConfigMap"},
		{Group: "apps", Version: "v1", Name: "deployments", Kind: "Deployment"},
		{Group: "gears.io", Version: "v1", Name: "gears", Kind: "Gear"},
	}
}

func (s served) Resolve(name string) ([]change.Resource, error) {
	found := slices.DeleteFunc(slices.Clone(s), func(r change.Resource) bool { return r.String() != name && !source.Covers(name, r) })
	if len(found) == 0 && !source.IsWildcard(name) {
		return nil, &source.UnknownResourceError{Name: name}
	}
	return found, nil
}

func (served) Names() []string { return nil }

func (served) LeftOut(string) []source.LeftOut { return nil }

// configured is what the text chooses of what is served.
func configured(t *testing.T, text string, of served) (*config.Config, *cluster.Cluster) {
	t.Helper()
	cfg, err := config.Parse("config.yaml", []byte("cluster: c\n"+text), os.LookupEnv)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	chosen, errs := selection.Choose(of, cfg.Resources)
	if err := errors.Join(errs...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	c := &cluster.Cluster{Name: "c"}
	c.Chosen.Store(chosen)
	return cfg, c
}

// savedWith is the state after a run with the configuration, in which each sink has three objects of each stream.
func savedWith(t *testing.T, text string) *control.State {
	t.Helper()
	state := &control.State{Cluster: "c", Streams: map[string]control.StreamState{}}
	if text == "" {
		return state
	}
	cfg, c := configured(t, text, everything())
	state.Configurations = map[string]json.RawMessage{}
	for i := range cfg.Sinks {
		text, err := Record(c, cfg, &cfg.Sinks[i])
		must(t, err)
		state.Configurations[cfg.Sinks[i].Name] = text
		for _, s := range c.Taken(&cfg.Sinks[i]) {
			of := state.Streams[s.Stream.String()]
			if of.Sinks == nil {
				of.Sinks = map[string]control.SinkState{}
			}
			of.Sinks[cfg.Sinks[i].Name] = control.SinkState{ResourceVersion: "7", Selector: s.Selection.String(), Objects: 3}
			state.Streams[s.Stream.String()] = of
		}
	}
	return state
}

const (
	lake     = "sinks: [{name: lake, file: {path: a}}]\n"
	lakeBus  = "sinks: [{name: lake, file: {path: a}}, {name: bus, file: {path: b}}]\n"
	bus      = "sinks: [{name: bus, file: {path: b}}]\n"
	lakePods = "sinks: [{name: lake, file: {path: a}, resources: [pods]}]\n"
)

// TestThePlanSaysWhatAnotherConfigurationDoes to the consumers of each sink, and nothing where it does nothing.
func TestThePlanSaysWhatAnotherConfigurationDoes(t *testing.T) {
	without := func(name string) served {
		return slices.DeleteFunc(everything(), func(r change.Resource) bool { return r.Name == name })
	}
	const stays = " as they are, and a gap says so; onLeave: delete would end them"
	for _, c := range []struct {
		what, before, after string
		served              served // nil is everything
		want                []string
	}{
		{what: "the first start", after: "resources: [pods]\n" + lake},
		{what: "the same", before: "resources: [pods]\n" + lake, after: "resources: [pods]\n" + lake},
		{what: "the same in another order", before: "resources: [pods, configmaps]\n" + lakeBus, after: "resources: [configmaps, pods]\n" + lakeBus},
		{what: "a sink more", before: "resources: [pods, configmaps]\n" + lake, after: "resources: [pods, configmaps]\n" + lakeBus,
			want: []string{"sink bus is new: it gets all objects of configmaps, pods"}},
		{what: "a sink less", before: "resources: [pods]\n" + lakeBus, after: "resources: [pods]\n" + lake,
			want: []string{"sink bus is not configured any more: its log stays as it is; exporter checkpoint forget-sink gives up what is saved of it"}},
		{what: "a sink of another name", before: "resources: [pods]\n" + lake, after: "resources: [pods]\n" + bus, want: []string{
			"sink bus is new: it gets all objects of pods",
			"sink lake is not configured any more: its log stays as it is; exporter checkpoint forget-sink gives up what is saved of it"}},
		{what: "a resource more", before: "resources: [pods]\n" + lake, after: "resources: [pods, configmaps]\n" + lake,
			want: []string{"sink lake has nothing of configmaps yet: it gets all objects"}},
		{what: "a resource less", before: "resources: [pods, configmaps]\n" + lake, after: "resources: [pods]\n" + lake,
			want: []string{"sink lake is not given configmaps any more: its objects (3) stay" + stays}},
		{what: "a resource less, and its objects", before: "resources: [pods, configmaps]\n" + lake, after: "resources: [pods]\n" + strings.Replace(lake, "path: a}", "path: a}, onLeave: delete", 1),
			want: []string{"sink lake is not given configmaps any more: its objects (3) are deleted there"}},
		{what: "a resource in place of another", before: "resources: [pods]\n" + lake, after: "resources: [configmaps]\n" + lake, want: []string{
			"sink lake has nothing of configmaps yet: it gets all objects", "sink lake is not given pods any more: its objects (3) stay" + stays}},
		{what: "a resource less of one sink", before: "resources: [pods, configmaps]\n" + lake, after: "resources: [pods, configmaps]\n" + lakePods,
			want: []string{"sink lake is not given configmaps any more: its objects (3) stay" + stays}},
		{what: "a resource more of one sink", before: "resources: [pods, configmaps]\n" + lakePods, after: "resources: [pods, configmaps]\n" + lake,
			want: []string{"sink lake has nothing of configmaps yet: it gets all objects"}},
		{what: "fewer namespaces", before: "resources: [pods]\n" + lake, after: "resources: [{resource: pods, namespaces: [b, a]}]\n" + lake,
			want: []string{"sink lake is given pods in a, b only: the objects of other namespaces stay" + stays}},
		{what: "all namespaces", before: "resources: [{resource: pods, namespaces: [a]}]\n" + lake, after: "resources: [pods]\n" + lake,
			want: []string{"sink lake is given pods in all namespaces now: it gets what it lacks"}},
		{what: "a namespace more", before: "resources: [{resource: pods, namespaces: [a]}]\n" + lake, after: "resources: [{resource: pods, namespaces: [a, b]}]\n" + lake,
			want: []string{"sink lake has nothing of b/pods yet: it gets all objects"}},
		{what: "another namespace", before: "resources: [{resource: pods, namespaces: [a]}]\n" + lake, after: "resources: [{resource: pods, namespaces: [b]}]\n" + lake, want: []string{
			"sink lake has nothing of b/pods yet: it gets all objects", "sink lake is not given a/pods any more: its objects (3) stay" + stays}},
		{what: "another selector", before: "resources: [pods]\n" + lake, after: "resources: [{resource: pods, labelSelector: x}]\n" + lake,
			want: []string{"sink lake is given pods by another selector: it gets a gap, what enters as replaced, and what leaves as deleted"}},
		{what: "a namespace that is left out", before: "resources: [pods]\n" + lake, after: "resources: [{resource: pods, excludeNamespaces: [a]}]\n" + lake,
			want: []string{"sink lake is given pods by another selector: it gets a gap, what enters as replaced, and what leaves as deleted"}},
		{what: "a wildcard in place of names", before: "resources: [pods]\n" + lake, after: "resources: ['*']\n" + lake,
			want: []string{"sink lake has nothing of configmaps, deployments.apps, gears.gears.io yet: it gets all objects"}},
		{what: "a name in place of a wildcard", before: "resources: ['*.apps', pods]\n" + lake, after: "resources: [deployments.apps, pods]\n" + lake},
		{what: "what a wildcard leaves out", before: "resources: ['*']\n" + lake, after: "resources: [{resource: '*', exclude: [pods, '*.apps']}]\n" + lake, want: []string{
			"sink lake is not given deployments.apps any more: its objects (3) stay" + stays, "sink lake is not given pods any more: its objects (3) stay" + stays}},
		{what: "a resource that is not served now", before: "resources: [pods, gears.gears.io]\n" + lake, after: "resources: [pods, gears.gears.io]\n" + lake, served: without("gears")},
		{what: "a resource of a wildcard that is not served now", before: "resources: ['*']\n" + lake, after: "resources: ['*']\n" + lake, served: without("gears")},
		{what: "one that is not served now, and not chosen", before: "resources: ['*']\n" + lake, after: "resources: [{resource: '*', exclude: ['*.gears.io']}]\n" + lake, served: without("gears"),
			want: []string{"sink lake is not given gears.gears.io any more: its objects (3) stay" + stays}},
		{what: "rules", before: "resources: [{resource: pods, drop: [.spec]}]\n" + lakeBus, after: "resources: [{resource: pods, drop: [.status], ops: [deleted]}]\n" + lakeBus,
			want: []string{"ops of pods has another value: it holds for new records only",
				"drop of pods has another value: it holds from the next change of each object, and for records on disk; exporter snapshot sends all objects by it"}},
		{what: "the same rules in another form", before: "resources: [{resource: pods, drop: [.spec, .status]}, configmaps]\n" + lake,
			after: "resources: [{resource: configmaps, ops: []}, {resource: pods, drop: [.status, .spec]}]\n" + lake},
		{what: "all operations by name", before: "resources: [pods]\n" + lake, after: "resources: [{resource: pods, ops: [deleted, added, updated]}]\n" + lake},
		{what: "a queue that coalesces", before: "resources: [pods]\n" + lake, after: "resources: [pods]\n" + strings.Replace(lake, "path: a}", "path: a}, queue: {full: coalesce}", 1),
			want: []string{"sink lake: queue.full has another value: while the sink is behind, coalesce leaves out all states of an object but the newest; block and spool do not"}},
		{what: "a filter that fails", before: "resources: [{resource: pods, filter: 'object.a == 1'}]\n" + lake, after: "resources: [{resource: pods, filter: 'object.a == 1', filterFailure: deadletter}]\n" + lake,
			want: []string{"filterFailure of pods has another value: it holds for new records only"}},
		{what: "what is too large", before: "resources: [pods]\n" + lake, after: "resources: [pods]\n" + strings.Replace(lake, "path: a}", "path: a}, oversize: trim, trim: [.data]", 1),
			want: []string{"sink lake: oversize has another value: it holds for new records only", "sink lake: trim has another value: it holds for new records only"}},
		{what: "a rule of a wildcard that a name takes the place of", before: "resources: [{resource: '*.apps', before: true}]\n" + lake, after: "resources: [deployments.apps]\n" + lake,
			want: []string{"before of deployments.apps has another value: it holds from the second change of each object at the latest, or after exporter snapshot"}},
		{what: "rules of a part, in another order", before: "resources: [" + parts("n1", "n2") + ", {resource: configmaps}]\n" + lake, after: "resources: [" + parts("n2", "n1") + ", {resource: configmaps}]\n" + lake},
		{what: "a rule of a part", before: "resources: [{resource: configmaps}]\n" + lake, after: "resources: [" + parts("n1") + ", {resource: configmaps}]\n" + lake,
			want: []string{"drop of configmaps has another value: it holds from the next change of each object, and for records on disk; exporter snapshot sends all objects by it"}},
		{what: "the key of the hashes", before: "redactKey: " + key("a") + "\nresources: [pods]\n" + lakeBus, after: "redactKey: " + key("b") + "\nhash: comparable\nresources: [pods]\n" + lakeBus,
			want: []string{"redactKey has another value: hashes differ from those before, from the next update of each object",
				"hash has another value: hashes differ from those before, from the next update of each object"}},
		{what: "another format of one sink", before: "resources: [pods]\n" + lakeBus, after: "resources: [pods]\n" + strings.Replace(lakeBus, "path: b}", "path: c}, format: debezium", 1),
			want: []string{"sink bus: file.path has another value: if it leads to another place, a gap of reason lost and a full snapshot follow there, and the old one stays as it is",
				"sink bus: format has another value: new records have another form, and readers have to read both until exporter snapshot has sent all objects"}},
		{what: "what no consumer sees", before: "resources: [pods]\n" + lake, after: "listen: :1\nresources: [pods]\n" + strings.Replace(lake, "path: a}", "path: a, keep: 3, rotate: 1Mi}, resync: 1h", 1)},
		{what: "another kind", before: "resources: [pods]\n" + lake, after: "resources: [pods]\nsinks: [{name: lake, nats: {url: nats://n}}]\n",
			want: []string{"sink lake was of kind file and is of kind nats: the start is refused; give it another name"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			of := c.served
			if of == nil {
				of = everything()
			}
			cfg, now := configured(t, c.after, of)
			if got := Plan(savedWith(t, c.before), now, cfg); !slices.Equal(got, c.want) {
				t.Errorf("the plan is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// parts are entries of configmaps in a namespace each, with a rule.
func parts(namespaces ...string) string {
	var all []string
	for _, namespace := range namespaces {
		all = append(all, fmt.Sprintf("{resource: configmaps, namespaces: [%[1]s], drop: [.data.%[1]s]}", namespace))
	}
	return strings.Join(all, ", ")
}

// key is a long enough redactKey.
func key(of string) string { return strings.Repeat(of, 40) }

// TestTheRecordShowsNothing of what is configured.
func TestTheRecordShowsNothing(t *testing.T) {
	cfg, c := configured(t, "redactKey: "+key("secret")+"\nresources: [{resource: pods, filter: 'object.secret == 1'}]\n"+
		"sinks: [{name: bus, kafka: {brokers: ['secret:1'], headers: {Authorization: secret}}}]\n", everything())
	text, err := Record(c, cfg, &cfg.Sinks[0])
	if err != nil || strings.Contains(string(text), "secret") || !strings.Contains(string(text), "kafka.headers") {
		t.Errorf("the record is %s, %v", text, err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestThePlanSaysWhatGoesToAnotherTask, and of what it gets, that another task may have it.
func TestThePlanSaysWhatGoesToAnotherTask(t *testing.T) {
	const ha = "state: {log: {sink: lake}}\nha: {}\nsinks: [{name: lake, kafka: {brokers: ['h:1']}}]\n"
	of := func(text string, number int) (*config.Config, *cluster.Cluster) {
		cfg, err := config.Parse("config.yaml", []byte("cluster: c\n"+text), os.LookupEnv)
		must(t, err)
		cfg = cfg.Of(cfg.AllTasks()[number-1])
		chosen, errs := selection.Choose(everything(), cfg.Resources)
		must(t, errors.Join(errs...))
		c := &cluster.Cluster{Name: "c", Task: number}
		c.Chosen.Store(chosen)
		return cfg, c
	}
	text := "tasks: 2\nresources: [{resource: pods, task: 2}, {resource: configmaps, task: 1}]\n" + ha
	saved := savedWith(t, "resources: [pods]\n"+ha)
	for number, want := range map[int][]string{
		1: {"sink lake has nothing of configmaps yet: it gets all objects, or what has changed if another task has them",
			"task 2 is to have pods: it goes on there, from what is saved here"},
		2: nil,
	} {
		cfg, c := of(text, number)
		if lines := Plan(saved, c, cfg); !slices.Equal(lines, want) {
			t.Errorf("task %d:\n%s\nwant\n%s", number, strings.Join(lines, "\n"), strings.Join(want, "\n"))
		}
	}
}
