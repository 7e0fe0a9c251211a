package telemetry

import (
	"maps"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// The states of a resource's schema.
const (
	schemaRegistered = "registered" // records are written with it
	schemaBehind     = "behind"     // so they are, and a newer version is not registered
	schemaWaiting    = "waiting"    // records wait for it
	schemaStopped    = "stopped"    // until a person helps
)

// schemaQuiet is how long the log is not told of further resources that wait.
const schemaQuiet = 10 * time.Second

// SchemaKnown is told with which schema a resource's records are written, and why not with a newer one; nil is that
// there is none.
func (t *Telemetry) SchemaKnown(name, resource string, schema sink.Schema, behind error) {
	now := schemaState{State: schemaRegistered, Subject: schema.Subject, ID: schema.ID}
	if behind != nil {
		now.State, now.LastError = schemaBehind, shownError(behind)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.setSchema(name, resource, now)
	line := []any{"sink", name, "resource", resource, "subject", schema.Subject, "id", schema.ID}
	switch {
	case behind != nil && before.LastError != now.LastError:
		t.Logger.Warn("schema cannot be brought up to date; records are written with the version that is known, and nothing is left out", append(line, "error", behind)...)
	case behind == nil && (before.State != schemaRegistered || before.ID != schema.ID):
		t.Logger.Info("schema registered", line...)
	}
}

// SchemaWaits is told that a resource's records wait for their schema, and why.
func (t *Telemetry) SchemaWaits(name, resource string, why error, forGood bool) {
	now := schemaState{State: schemaWaiting, LastError: shownError(why)}
	if forGood {
		now.State = schemaStopped
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.setSchema(name, resource, now)
	s := t.states.sinks[name]
	line := []any{"sink", name, "resource", resource, "error", why}
	switch {
	case before.State == now.State && (!forGood || before.LastError == now.LastError):
	case forGood:
		t.Logger.Error("stream stopped for this sink: its schema is refused; the others continue; fix the cause: it is tried again within a minute", line...)
	case time.Since(s.schemasTold) > schemaQuiet:
		s.schemasTold = time.Now()
		t.Logger.Warn("stream waits for its schema; others that have theirs continue", line...)
	}
}

// SchemaReplaced is told that a registry has lost an id that it had then.
func (t *Telemetry) SchemaReplaced(name, resource string, schema sink.Schema, confirmed time.Time) {
	t.metrics.schemasReplaced.WithLabelValues(name).Inc()
	t.Logger.Error("the schema registry was replaced, or a version deleted: records since then have an id that it may know as another schema; they are read with what exporter schema show prints, and exporter snapshot sends the objects again",
		"sink", name, "resource", resource, "subject", schema.Subject, "id", schema.ID, "confirmed", confirmed.UTC().Format(time.RFC3339))
}

// SchemaForgotten is told that nothing is written of the resource.
func (t *Telemetry) SchemaForgotten(name, resource string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.sinks[name]
	s.Schemas = maps.Clone(s.Schemas)
	delete(s.Schemas, resource)
}

// setSchema replaces the map, which readers of the status may have; the caller holds mu.
func (t *Telemetry) setSchema(name, resource string, to schemaState) (before schemaState) {
	s := t.states.sinks[name]
	before = s.Schemas[resource]
	to.Since = time.Now()
	if before.State == to.State {
		to.Since = before.Since
	}
	all := maps.Clone(s.Schemas)
	if all == nil {
		all = map[string]schemaState{}
	}
	all[resource] = to
	s.Schemas = all
	return before
}
