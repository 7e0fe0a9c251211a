package check

import (
	"encoding/json"
	"errors"
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
	"github.com/kubecdc/kubecdc/test/script"
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

// configured is what the text chooses of what is served, for the task of the number where it has several.
func configured(t *testing.T, text string, of served, task int) (*config.Config, *cluster.Cluster) {
	t.Helper()
	cfg, err := config.Parse("config.yaml", []byte("cluster: c\n"+text), os.LookupEnv)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if cfg.IsSplit() {
		cfg = cfg.Of(cfg.AllTasks()[task-1])
	}
	chosen, errs := selection.Choose(of, cfg.Resources)
	if err := errors.Join(errs...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	c := &cluster.Cluster{Name: "c", Task: cfg.Task.Number}
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
	cfg, c := configured(t, text, everything(), 1)
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

// TestThePlanSaysWhatAnotherConfigurationDoes to the consumers of each sink, and nothing where it does nothing.
func TestThePlanSaysWhatAnotherConfigurationDoes(t *testing.T) {
	script.Run(t, "testdata/plan.txt", func(text string) string {
		parts := append(strings.Split(text, "---"), "")
		of := slices.DeleteFunc(everything(), func(r change.Resource) bool { return " without "+r.Name+"\n" == parts[2] })
		task := 1
		if parts[2] == " task 2\n" {
			task = 2
		}
		cfg, now := configured(t, parts[1], of, task)
		return strings.Join(Plan(savedWith(t, parts[0]), now, cfg), "\n   ")
	})
}

// key is a long enough redactKey.
func key(of string) string { return strings.Repeat(of, 40) }

// TestTheRecordShowsNothing of what is configured.
func TestTheRecordShowsNothing(t *testing.T) {
	cfg, c := configured(t, "redactKey: "+key("secret")+"\nresources: [{resource: pods, filter: 'object.secret == 1'}]\n"+
		"sinks: [{name: bus, kafka: {brokers: ['secret:1'], headers: {Authorization: secret}}}]\n", everything(), 1)
	text, err := Record(c, cfg, &cfg.Sinks[0])
	if err != nil || strings.Contains(string(text), "secret") || !strings.Contains(string(text), "kafka.headers") {
		t.Errorf("the record is %s, %v", text, err)
	}
}

var must = script.Must
