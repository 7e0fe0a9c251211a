package deploy

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"regexp"
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
	name   string
	series string
	fires  map[int][]string // minute -> names; the others fire nothing
}

// old is an exporter that has been running for long.
const old = `
kubecdc_build_info{job="kubecdc",instance="a"} 1x120
process_start_time_seconds{job="kubecdc",instance="a"} -86400x120
`

func stories() []story {
	of := func(series string) string { return strings.ReplaceAll(series, "{", `{job="kubecdc",instance="a",`) }
	return []story{
		{"all is well", old + of(`
kubecdc_sink_records_total{sink="out",resource="pods"} 0+60x120
kubecdc_commit_seconds_count{} 0+6x120
kubecdc_position_age_seconds{resource="pods"} 1 30 59x118
kubecdc_history_seconds{resource="pods"} 300x30 75x90
kubecdc_history_left_seconds{resource="pods"} 300 299 297x28 75x90
kubecdc_inventory_objects{resource="pods"} 10x120
kubecdc_oldest_unacked_seconds{sink="out"} 0 0.1 3 0x117
kubecdc_spool_bytes{sink="out"} 0x120
kubecdc_sink_stopped{sink="out"} 0x120
kubecdc_delivery_seconds_bucket{sink="out",le="1"} 0+60x120
kubecdc_delivery_seconds_bucket{sink="out",le="+Inf"} 0+60x120
kubecdc_sink_retries_total{sink="out",reason="broker"} 0+1x3 3x117
kubecdc_source_gaps_total{resource="pods",reason="gone"} 3x120
kubecdc_corrections_total{resource="pods",op="replaced"} 2x120
`), nil},
		{"the first gap of a running exporter", old + of(`kubecdc_source_gaps_total{resource="pods",reason="gone"} _x30 1x90`),
			map[int][]string{32: {"KubecdcGap"}, 44: {"KubecdcGap"}, 75: nil, 120: nil}},
		{"a changed definition", old + of(`kubecdc_source_gaps_total{resource="gears",reason="redefined"} _x30 1x90`),
			map[int][]string{32: {"KubecdcRedefined"}, 44: {"KubecdcRedefined"}, 75: nil, 120: nil}},
		{"one more gap", old + of(`kubecdc_source_gaps_total{resource="pods",reason="gone"} 1x30 2x90`), map[int][]string{33: {"KubecdcGap"}, 44: {"KubecdcGap"}, 75: nil, 120: nil}},
		{"a gap at the start, after a life that had as many", strings.Replace(old, "-86400x120", "-86400x30 1860x90", 1) +
			of(`kubecdc_source_gaps_total{resource="pods",reason="gone"} 1x30 1x90`), map[int][]string{31: {"KubecdcGap"}, 45: {"KubecdcGap"}, 75: nil, 120: nil}},
		{"a Prometheus that is new finds old gaps", strings.ReplaceAll(old, "} ", "} _x20 ") +
			of(`kubecdc_source_gaps_total{resource="pods",reason="gone"} _x20 5x100`), map[int][]string{5: {"KubecdcAbsent"}, 19: {"KubecdcAbsent"}, 75: nil, 120: nil}},
		{"a record that a sink will never take", old + of(`
kubecdc_source_gaps_total{resource="pods",reason="policy"} _x30 1x90
kubecdc_sink_rejected_total{sink="out",reason="too_large"} _x30 1x90
`), map[int][]string{32: {"KubecdcRejected"}, 44: {"KubecdcRejected"}, 75: nil, 120: nil}},
		{"drift", old + of(`kubecdc_corrections_total{resource="pods",op="deleted"} 1x30 4x90`), map[int][]string{33: {"KubecdcDrift"}, 44: {"KubecdcDrift"}, 75: nil, 120: nil}},
		{"a filter that fails", old + of(`kubecdc_source_misshapen_total{resource="pods"} _x30 1x90`), map[int][]string{32: {"KubecdcMisshapen"}, 44: {"KubecdcMisshapen"}, 75: nil, 120: nil}},
		{"a full volume", old + of(`
kubecdc_sink_records_total{sink="out",resource="pods"} 0+60x120
kubecdc_commit_seconds_count{} 0+6x30 180x30 180+6x60
`), map[int][]string{45: {"KubecdcStateNotSaved"}, 60: {"KubecdcStateNotSaved"}, 75: nil, 120: nil}},
		{"a quiet cluster saves nothing", old + of(`
kubecdc_sink_records_total{sink="out",resource="pods"} 60x120
kubecdc_commit_seconds_count{} 6x120
`), nil},
		{"the exporter is gone", strings.ReplaceAll(old, "x120", "x30 stale"), map[int][]string{37: {"KubecdcAbsent"}, 120: {"KubecdcAbsent"}}},
		{"a broker is down", old + of(`kubecdc_oldest_unacked_seconds{sink="out"} 0x30 60+60x30 0x60`),
			map[int][]string{37: {"KubecdcSinkStuck"}, 60: {"KubecdcSinkStuck"}, 75: nil, 120: nil}},
		{"a sink is stopped", old + of(`kubecdc_sink_stopped{sink="out"} 0x30 1x30 0x60`),
			map[int][]string{37: {"KubecdcSinkStopped"}, 60: {"KubecdcSinkStopped"}, 75: nil, 120: nil}},
		{"a sink holds a stream up", old + of(`
kubecdc_history_seconds{resource="pods"} 300x120
kubecdc_history_left_seconds{resource="pods"} 300x30 240 180 120 60 0x30 300x60
`),
			map[int][]string{33: {"KubecdcHistoryEnds"}, 60: {"KubecdcHistoryEnds"}, 75: nil, 120: nil}},
		{"the API server refuses the credentials", old + of(`
kubecdc_history_seconds{resource="pods"} 300x120
kubecdc_history_left_seconds{resource="pods"} 300x30 240 180 120 60 0x30 300x60
kubecdc_stream_state{resource="pods",state="failing"} 0x30 1x34 0x56
`), map[int][]string{32: nil, 33: {"KubecdcHistoryEnds"}, 35: {"KubecdcHistoryEnds"}, 60: {"KubecdcHistoryEnds", "KubecdcStreamFailing"}, 75: nil, 120: nil}},
		{"a sink holds a busy stream up", old + of(`
kubecdc_history_seconds{resource="pods"} 75x120
kubecdc_history_left_seconds{resource="pods"} 75x30 15 0x10 75x60
`), map[int][]string{31: {"KubecdcHistoryEnds"}, 40: {"KubecdcHistoryEnds"}, 75: nil, 120: nil}},
		{"a sink holds a stream up for a moment", old + of(`
kubecdc_history_seconds{resource="pods"} 300x120
kubecdc_history_left_seconds{resource="pods"} 300x30 240 180 300x88
`), nil},
		{"a broker restarts", old + of(`kubecdc_oldest_unacked_seconds{sink="out"} 0x30 60 125 185 0x88`), nil},
		{"delivery is slow", old + of(`
kubecdc_delivery_seconds_bucket{sink="out",le="4"} 0+10x120
kubecdc_delivery_seconds_bucket{sink="out",le="65"} 0+60x120
kubecdc_delivery_seconds_bucket{sink="out",le="+Inf"} 0+60x120
`), map[int][]string{20: {"KubecdcSlowDelivery"}, 120: {"KubecdcSlowDelivery"}}},
		{"a sink tries again and again", old + of(`kubecdc_sink_retries_total{sink="out",reason="broker"} 0x30 0+6x90`),
			map[int][]string{50: {"KubecdcSinkRetries"}, 120: {"KubecdcSinkRetries"}}},
		{"a spool grows", old + of(`kubecdc_spool_bytes{sink="out"} 0x10 0+1000000x110`), map[int][]string{20: {"KubecdcSpoolGrows"}, 50: {"KubecdcSpoolGrows"}, 120: {"KubecdcSpoolGrows"}}},
		{"the log of the state is behind", old + of(`kubecdc_state_log_lag_seconds 0x30 61x30 0x60`),
			map[int][]string{37: {"KubecdcStateLogBehind"}, 60: {"KubecdcStateLogBehind"}, 62: nil, 120: nil}},
		{"the log of the state is behind for a moment", old + of(`kubecdc_state_log_lag_seconds 0x30 61x3 0x86`), nil},
		{"a leader and a standby", pair(`0x120`, `1x120`, `1x120`, `0x120`), nil},
		{"one dies, and the other leads", pair(`1x30 0x90`, `1x30 0x90`, `0x30 1x90`, `0x30 1x90`), nil},
		{"nobody leads", pair(`1x30 0x30 1x60`, `1x120`, `0x120`, `0x120`),
			map[int][]string{33: {"KubecdcNoLeader"}, 60: {"KubecdcNoLeader"}, 62: nil, 120: nil}},
		{"a task cannot begin", old + of(`kubecdc_task_up{task="eu1"} 1x30 0x30 1x60`),
			map[int][]string{33: nil, 37: {"KubecdcTaskDown"}, 60: {"KubecdcTaskDown"}, 62: nil, 120: nil}},
		{"a task that nobody has", old + of(`kubecdc_tasks_unowned 0x30 1x30 0x60`),
			map[int][]string{31: nil, 34: {"KubecdcTaskUnowned"}, 60: {"KubecdcTaskUnowned"}, 62: nil, 120: nil}},
		{"nobody leads for a moment", pair(`1x30 0x0 1x89`, `1x120`, `0x120`, `0x120`), nil},
		{"the standby does not follow", old + of(`kubecdc_standby_lag_seconds 0x30 61x30 0x60`), map[int][]string{34: nil, 38: {"KubecdcStandbyBehind"}, 64: nil}},
		{"the standby is gone", pair(`1x120`, `1x120`, `0x30 stale`, `0x30 stale`), map[int][]string{42: {"KubecdcNoStandby"}, 120: {"KubecdcNoStandby"}}},
		{"they take over from each other", pair(`1x120`, `1x30 1+1x20 21x70`, `0x120`, `0x30 0+1x20 20x70`),
			map[int][]string{40: {"KubecdcTakeovers"}, 60: {"KubecdcTakeovers"}, 90: nil, 120: nil}},
		{"two updates", pair(`1x120`, `1x30 2x10 3x80`, `0x120`, `0x30 1x90`), nil},
		{"a spool shrinks", old + of(`kubecdc_spool_bytes{sink="out"} 120000000-1000000x120`), nil},
		{"a stream fails", old + of(`kubecdc_position_age_seconds{resource="pods"} 0+60x120`), map[int][]string{37: {"KubecdcStreamBehind"}, 120: {"KubecdcStreamBehind"}}},
		{"a stream fails for some minutes", old + of(`kubecdc_stream_state{resource="pods",state="failing"} 0x30 1x30 0x60`),
			map[int][]string{36: {"KubecdcStreamFailing"}, 60: {"KubecdcStreamFailing"}, 62: nil, 120: nil}},
		{"a stream fails for a moment", old + of(`kubecdc_stream_state{resource="pods",state="failing"} 0x30 1x3 0x86`), nil},
		{"a stream is forbidden", old + of(`
kubecdc_inventory_objects{resource="pods"} 0x120
kubecdc_inventory_objects{resource="services"} 9x120
kubecdc_position_age_seconds{resource="services"} 1x120
`), map[int][]string{30: {"KubecdcStreamNotStarted"}, 120: {"KubecdcStreamNotStarted"}}},
		{"the audit webhook is refused", old + of(`kubecdc_audit_refused_total{reason="handshake"} 0x30 0+1x30 30x60`),
			map[int][]string{32: nil, 45: {"KubecdcAuditRefused"}, 60: {"KubecdcAuditRefused"}, 75: nil, 120: nil}},
		{"the audit webhook is refused for a moment", old + of(`kubecdc_audit_refused_total{reason="busy"} 0x30 3x90`), nil},
		{"audit events stop", old + audits(`0+60x120`, `0+5x20 100x100`), map[int][]string{80: nil, 95: {"KubecdcAuditSilent"}, 120: {"KubecdcAuditSilent"}}},
		{"audit events never come", old + audits(`0+60x120`, `0x120`), map[int][]string{60: nil, 65: {"KubecdcAuditSilent"}, 120: {"KubecdcAuditSilent"}}},
		{"audit events come again", old + audits(`0+60x120`, `0x80 0+5x40`), map[int][]string{65: {"KubecdcAuditSilent"}, 80: {"KubecdcAuditSilent"}, 85: nil, 120: nil}},
		{"nothing changes, and no audit event comes", old + audits(`60x120`, `5x120`), nil},
		{"what changes now and then is no silence", old + audits(`0x50 9x50 18x20`, `0x120`), nil},
		{"no audit webhook is configured", old + of(`kubecdc_source_records_total{resource="pods",op="updated"} 0+60x120`), nil},
		{"what policies leave out changes", old + of(`
kubecdc_source_records_total{resource="leases.coordination.k8s.io",op="updated"} 0+60x120
kubecdc_source_records_total{resource="events",op="added"} 0+60x120
kubecdc_audit_events_total{outcome="proven"} 0x120
`), nil},
		{"audit events come to the one that leads", pair(`0x120`, `1x120`, `1x120`, `1x120`) + `
kubecdc_source_records_total{job="kubecdc",instance="a",resource="pods",op="updated"} 60x120
kubecdc_audit_events_total{job="kubecdc",instance="a",outcome="proven"} 9x120
kubecdc_source_records_total{job="kubecdc",instance="b",resource="pods",op="updated"} 0+60x120
kubecdc_audit_events_total{job="kubecdc",instance="b",outcome="likely"} 0+9x120
`, nil},
		{"the exporter crashes", strings.Replace(old, "-86400x120", "0 300x10 900x10 1500x10 2100x10 2700x60", 1), map[int][]string{45: {"KubecdcRestarts"}, 58: {"KubecdcRestarts"}}},
		{"the exporter is updated", strings.Replace(old, "-86400x120", "0x30 1800x30 3600x60", 1), nil},
	}
}

// audits is an exporter with an audit webhook: how many changes have come, and how many events.
func audits(changes, events string) string {
	return fmt.Sprintf(`
kubecdc_source_records_total{job="kubecdc",instance="a",resource="pods",op="updated"} %s
kubecdc_audit_events_total{job="kubecdc",instance="a",outcome="proven"} 0x120
kubecdc_audit_events_total{job="kubecdc",instance="a",outcome="ignored"} %s
`, changes, events)
}

// pair are two exporters that share a Lease: whether each leads, and how often it has begun to.
func pair(leads, began, otherLeads, otherBegan string) string {
	return old + fmt.Sprintf(`
kubecdc_leader{job="kubecdc",instance="a"} %s
kubecdc_takeovers_total{job="kubecdc",instance="a"} %s
kubecdc_leader{job="kubecdc",instance="b"} %s
kubecdc_takeovers_total{job="kubecdc",instance="b"} %s
`, leads, began, otherLeads, otherBegan)
}

// TestAlertsFireWhenTheyShould: each story says what fires at some minutes; in the others, up to two hours, nothing
// else may.
func TestAlertsFireWhenTheyShould(t *testing.T) {
	told := map[string]bool{}
	for _, s := range stories() {
		t.Run(s.name, func(t *testing.T) {
			fired := play(t, s.series)
			known := map[string]bool{}
			for minute, want := range s.fires {
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
	loader, err := promqltest.NewLazyLoader("load 1m"+regexp.MustCompile(`\n+`).ReplaceAllString(series, "\n  "), promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true})
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
	objects := render(t, "x", everyOption)
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
