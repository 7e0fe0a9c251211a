package telemetry

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/schema"
	"github.com/kubecdc/kubecdc/test/validate"
)

// full is a status document with all that there can be.
func full() Status {
	now := time.Now()
	gap := &gapState{Reason: change.Policy, Stream: "pods", Sinks: []string{"bus"}, Object: "shop/web", From: "1", To: "2", Since: now, Time: now, Rejected: "too_large", Resolved: now}
	return Status{
		Version: "v1", Cluster: "dev", ClusterUID: "u", UptimeSeconds: 1.5, Healthy: true, Ready: true, Problems: []string{"none"},
		HA: &Leadership{Leads: true, Leader: "kubecdc-0", Since: now, Lease: "kubecdc/prod-eu1", Takeovers: 1, LastError: "down", Standby: &Standby{Whole: true, LagSeconds: 1, Trouble: Trouble{"down", now}}},
		Streams: map[string]streamState{"pods": {
			State: watching, ResourceVersion: "7", PositionAgeSeconds: 0.1, HistoryLeftSeconds: 300, Records: 1, Gaps: 1, LastGap: gap,
			LastSnapshot: &completeSnapshot{Reason: change.Initial, Sinks: []string{"bus"}, ResourceVersion: "7", Counts: change.Counts{Replaced: 1}, Limits: change.Limits{Namespace: "shop"}, Time: now},
			Snapshot:     &snapshotState{Reason: change.Requested, Sinks: []string{"bus"}, Limits: change.Limits{Namespace: "shop", Name: "web", Selector: "a=b"}, Since: now, Objects: 7, Percent: new(33)},
			Trouble:      Trouble{"forbidden", now}, HeldBy: []string{"bus"}, HeldSince: now,
		}},
		Sinks: map[string]sinkState{"bus": {
			Place: Place{"nats", "nats:4222 stream K8S", "cloudevents"}, State: open, Records: 1, QueueRecords: 1, QueueBytes: 1, SpoolRecords: 1, SpoolBytes: 1, OldestUnackedSeconds: 1, Mark: "1", Note: "fast",
			Gaps: 1, LastGap: gap, Trouble: Trouble{"refused", now}, RecentGaps: []*gapState{gap}, FailingSince: now,
		}},
		State:     commitState{Trouble: Trouble{"full", now}, FailingSince: now, SavedAgain: now, Log: &StateLog{LagSeconds: 1, Fenced: true, Trouble: Trouble{"full", now}}},
		Discovery: discoveryState{LastRead: now, Trouble: Trouble{"down", now}, LeftOut: map[string]string{"secrets": "not by a wildcard"}},
	}
}

// TestTheSchemaIsOfTheStatus: of a document that is full, of one of an exporter that has just started, and of every
// field.
func TestTheSchemaIsOfTheStatus(t *testing.T) {
	fresh := newTelemetry(new(bytes.Buffer))
	for _, status := range []Status{full(), fresh.Status()} {
		text, err := json.Marshal(status)
		must(t, err)
		if err := validate.Status(text); err != nil {
			t.Error(err)
		}
	}
	text, err := schema.Files.ReadFile("statusz.json")
	must(t, err)
	var node fields
	must(t, json.Unmarshal(text, &node))
	node.compare(t, reflect.TypeFor[Status](), "")
}

// fields is a part of a schema.
type fields struct {
	Enum       []string
	Required   []string
	Properties map[string]fields
	Additional *fields `json:"additionalProperties"`
}

// compare wants the same fields in the schema as in the type, and the same of them to be optional.
func (f *fields) compare(t *testing.T, of reflect.Type, path string) {
	t.Helper()
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() == reflect.Map && f.Additional != nil {
		f.Additional.compare(t, of.Elem(), path+".*")
		return
	}
	if of.Kind() != reflect.Struct || of == reflect.TypeFor[time.Time]() {
		return
	}
	have := map[string]bool{} // whether it is always there
	for _, field := range reflect.VisibleFields(of) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !field.IsExported() || field.Anonymous {
			continue
		}
		have[name] = options == ""
		part := f.Properties[name]
		part.compare(t, field.Type, path+"."+name)
	}
	if got, want := slices.Sorted(maps.Keys(f.Properties)), slices.Sorted(maps.Keys(have)); !slices.Equal(got, want) {
		t.Errorf("%s: the schema has the fields %q, the type %q", path, got, want)
	}
	for name, always := range have {
		if slices.Contains(f.Required, name) != always {
			t.Errorf("%s.%s: required by the schema: %t, always written: %t", path, name, !always, always)
		}
	}
	if got := f.Properties["state"].Enum; got != nil && !slices.Equal(got, statesIn(of)) {
		t.Errorf("%s: the schema has the states %q, want %q", path, got, statesIn(of))
	}
}

func statesIn(of reflect.Type) []string {
	if of == reflect.TypeFor[schemaState]() {
		return []string{schemaRegistered, schemaBehind, schemaWaiting, schemaStopped}
	}
	if of == reflect.TypeFor[sinkState]() {
		return []string{starting, open, failing, stopped}
	}
	return []string{starting, snapshotting, watching, waiting, failing}
}
