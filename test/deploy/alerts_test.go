package deploy

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"sigs.k8s.io/yaml"

	"github.com/kubecdc/kubecdc/test/deploy/generated"
)

const alertsFile = root + "/" + generated.Chart + "/files/alerts.yaml"

// story is what Prometheus scrapes, a sample a minute, and which alerts fire when.
type story struct {
	Name   string
	Series string
	Fires  map[int][]string // minute -> names; the others fire nothing
}

// TestAlertsFireWhenTheyShould: each story says what fires at some minutes; in the others, up to two hours, nothing
// else may.
func TestAlertsFireWhenTheyShould(t *testing.T) {
	told := map[string]bool{}
	for _, s := range table[story](t, "stories.yaml") {
		t.Run(s.Name, func(t *testing.T) {
			fired := play(t, s.Series)
			known := map[string]bool{}
			for minute, want := range s.Fires {
				for _, name := range want {
					known[name], told[name] = true, true
				}
				if !slices.Equal(fired[minute], want) {
					t.Errorf("minute %d: %q fire, want %q", minute, fired[minute], want)
				}
			}
			for _, minute := range slices.Sorted(maps.Keys(fired)) {
				for _, name := range fired[minute] {
					if !known[name] {
						t.Fatalf("minute %d: %s fires", minute, name)
					}
				}
			}
		})
	}
	for _, rule := range alerts(t) {
		if !told[rule.Alert] {
			t.Errorf("no story has %s", rule.Alert)
		}
	}
}

// play returns the names of the alerts that fire in each minute, as promtool's unit tests do.
func play(t *testing.T, series string) map[int][]string {
	t.Helper()
	loader, err := promqltest.NewLazyLoader("load 1m"+strings.ReplaceAll("\n"+strings.TrimSpace(series), "\n", "\n  "), promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true})
	if err != nil {
		t.Fatal(err)
	}
	defer loader.Close()
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(loader.QueryEngine(), loader.Storage()), Appendable: loader.Storage(), Context: loader.Context(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Logger: silent(), Parser: parser.NewParser(parser.Options{}),
	})
	groups, errs := manager.LoadGroups(time.Minute, labels.EmptyLabels(), "", nil, false, alertsFile)
	if errs != nil {
		t.Fatal(errs)
	}
	fired := map[int][]string{}
	for minute := range 121 {
		at := time.Unix(int64(minute)*60, 0).UTC()
		loader.WithSamplesTill(at, func(err error) {
			if err != nil {
				t.Fatal(err)
			}
			for _, group := range groups {
				group.Eval(loader.Context(), at)
				fired[minute] = append(fired[minute], firing(t, group)...)
			}
		})
	}
	return fired
}

func silent() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// firing are the alerts of the group that fire. The texts of each must be complete.
func firing(t *testing.T, group *rules.Group) []string {
	t.Helper()
	var names []string
	for _, rule := range group.Rules() {
		alert := rule.(*rules.AlertingRule)
		alert.SetRestored(true)
		if err := alert.LastError(); err != nil {
			t.Fatalf("%s: %v", alert.Name(), err)
		}
		for _, a := range alert.ActiveAlerts() {
			if a.State == rules.StateFiring {
				names = append(names, alert.Name())
				checkTexts(t, alert.Name(), a)
			}
		}
	}
	return names
}

func checkTexts(t *testing.T, name string, a *rules.Alert) {
	t.Helper()
	for _, key := range []string{"summary", "description"} {
		if text := a.Annotations.Get(key); len(text) < 20 || strings.Contains(text, "<no value>") || strings.Contains(text, "error expanding") || strings.Contains(text, "()") {
			t.Errorf("%s: %s is %q", name, key, text)
		}
	}
	if want := "docs/operating.md#" + strings.ToLower(name); !strings.HasSuffix(a.Annotations.Get("runbook_url"), want) {
		t.Errorf("%s: runbook_url is %q, want %s", name, a.Annotations.Get("runbook_url"), want)
	}
}

// alerts are the rules of the file.
func alerts(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(alertsFile, false, model.UTF8Validation, parser.NewParser(parser.Options{}), silent())
	if errs != nil {
		t.Fatal(errs)
	}
	var all []rulefmt.Rule
	for _, group := range groups.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// TestOperatorTakesWhatTheChartRenders: the kinds of the Prometheus operator, read strictly into its own types, with
// the very rules of the file.
func TestOperatorTakesWhatTheChartRenders(t *testing.T) {
	objects := render(t, "x", valueSets(t)["every-option"])
	var monitor monitoringv1.ServiceMonitor
	var rule monitoringv1.PrometheusRule
	for kind, into := range map[string]any{"ServiceMonitor": &monitor, "PrometheusRule": &rule} {
		text, err := yaml.Marshal(find(t, objects, kind).Object)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(text, into); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	count := 0
	for _, group := range rule.Spec.Groups {
		count += len(group.Rules)
	}
	if want := len(alerts(t)); count != want {
		t.Errorf("%d rules, want %d", count, want)
	}
	labels := find(t, objects, "Service").GetLabels()
	for key, value := range monitor.Spec.Selector.MatchLabels {
		if labels[key] != value {
			t.Errorf("the ServiceMonitor wants a Service with %s=%s, which has %q", key, value, labels[key])
		}
	}
}
