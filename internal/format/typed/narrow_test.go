package typed_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/format/typed"
	"github.com/kubecdc/kubecdc/internal/shape/transform"
)

// at is the type that field names lead to; * is an element.
func at(t *testing.T, of *typed.Type, path string) *typed.Type {
	t.Helper()
	for _, name := range strings.Split(path, ".") {
		next := of.Elem
		for _, f := range of.Fields {
			if f.JSON == name {
				next = f.Type
			}
		}
		if next == nil {
			return nil
		}
		of = next
	}
	return of
}

// TestRulesArePartOfTheType: a field that is dropped is not in it, and what is redacted is a string.
func TestRulesArePartOfTheType(t *testing.T) {
	of := typeIn(t, definition{
		"Thing": kindOf(definition{
			"apiVersion": definition{"type": "string"}, "kind": definition{"type": "string"},
			"metadata": definition{"type": "object", "properties": definition{
				"name": definition{"type": "string"}, "created": definition{"type": "string", "format": "date-time"},
				"labels": definition{"type": "object", "additionalProperties": definition{"type": "string"}},
			}},
			"spec": definition{"type": "object", "properties": definition{
				"replicas": definition{"type": "integer"}, "first": definition{"$ref": "#/components/schemas/Part"}, "second": definition{"$ref": "#/components/schemas/Part"},
				"ports": definition{"type": "array", "items": definition{"type": "integer"}},
				"sizes": definition{"type": "object", "additionalProperties": definition{"type": "integer"}},
				"free":  definition{"type": "object"}, "port": definition{"x-kubernetes-int-or-string": true},
			}},
		}),
		"Part": definition{"type": "object", "properties": definition{"on": definition{"type": "boolean"}, "count": definition{"type": "integer"}}},
	})
	for _, c := range []struct {
		rules transform.Rules
		want  string // paths with their kinds, - is none
	}{
		{transform.Rules{}, "spec.replicas=Long"},
		{transform.Rules{Drop: []string{".spec.replicas", ".metadata.labels['a']", ".spec.ports[0]"}}, "spec.replicas=- metadata.labels.*=String spec.ports.*=Long"},
		{transform.Rules{Drop: []string{".spec"}}, "spec=- metadata.name=String"},
		{transform.Rules{Redact: []string{".spec.replicas", ".metadata.created"}}, "spec.replicas=String metadata.created=String spec.first.on=Bool"},
		{transform.Rules{Redact: []string{".spec"}}, "spec.replicas=String spec.first.on=String spec.ports.*=String spec.sizes.*=String spec.free=Text spec.port=String metadata.created=Time"},
		{transform.Rules{Redact: []string{".spec.first.on"}}, "spec.first.on=String spec.second.on=Bool spec.first.count=Long"},
		{transform.Rules{Redact: []string{".spec.*.on"}}, "spec.first.on=String spec.second.on=String spec.first.count=Long"},
		{transform.Rules{Redact: []string{".spec.ports[*]", ".spec.sizes.*"}}, "spec.ports.*=String spec.sizes.*=String"},
		{transform.Rules{Redact: []string{".spec.ports[1]", ".spec.sizes['a']", ".metadata.labels['a']"}}, "spec.ports.*=Text spec.sizes.*=Text metadata.labels.*=String"},
		{transform.Rules{Keep: []string{".spec.replicas"}}, "spec.replicas=Long spec.first=- metadata.name=String metadata.created=- kind=String"},
		{transform.Rules{Keep: []string{".spec.first.on", ".metadata.labels['a']"}}, "spec.first.on=Bool spec.first.count=- spec.second=- metadata.labels.*=String"},
		{transform.Rules{Drop: []string{".spec.*.on", ".spec.*.count"}}, "spec.first=Text spec.replicas=Long"},
	} {
		narrowed, err := of.Narrow(c.rules)
		must(t, err)
		for _, want := range strings.Fields(c.want) {
			path, kind, _ := strings.Cut(want, "=")
			got := "-"
			if found := at(t, narrowed, path); found != nil {
				got = kindNames()[found.Kind]
			}
			if got != kind {
				t.Errorf("by %+v, %s is %s, want %s", c.rules, path, got, kind)
			}
		}
		newCodec(t, narrowed)
	}
	if _, err := of.Narrow(transform.Rules{Drop: []string{".a["}}); err == nil {
		t.Error("a path that is none is taken")
	}
	if narrowed, err := of.Narrow(transform.Rules{Drop: []string{".*"}}); err != nil || len(narrowed.Fields) != 0 {
		t.Errorf("of all that is dropped there are fields, %v", err)
	}
}

func kindNames() map[typed.Kind]string {
	return map[typed.Kind]string{typed.Text: "Text", typed.Bool: "Bool", typed.Long: "Long", typed.String: "String", typed.Time: "Time", typed.Record: "Record"}
}

// somePath is one that leads somewhere in a text of the object.
func somePath(w world) string {
	return one(w, ".spec", ".spec.template", ".spec.template.spec.containers[*].image", ".spec.template.spec.containers[0]", ".status", ".metadata.labels",
		".metadata.annotations['a']", ".*.*", ".spec.*.spec", ".data", ".data.*", ".spec.replicas", ".metadata.creationTimestamp", ".spec.ports[*].port",
		".metadata.generation", ".spec.*", ".rules[*].verbs[1]", ".spec.selector", ".type", ".metadata.ownerReferences[*].controller")
}

// TestI9NoValueComesThroughATypedField: what goes through rules of any kind is restored as the rules leave it, with the
// type that the rules make and with one that knows none, and nothing that they hide is in the message.
func TestI9NoValueComesThroughATypedField(t *testing.T) {
	const hidden = "a-value-that-nobody-may-see"
	plant := func(object []byte) []byte { return bytes.ReplaceAll(object, []byte(`va\"lue\\}`), []byte(hidden)) }
	eachKind(t, 9, plant, func(r *ruled) {
		for _, of := range []*typed.Type{r.of, r.narrowed} {
			message := newCodec(t, of).restore(r.shaped)
			if got, want := bytes.Count(message, []byte(hidden)), bytes.Count(r.shaped, []byte(hidden)); got != want {
				t.Errorf("by %+v, %d hidden values are in the message, %d in the object", r.rules, got, want)
			}
		}
	})
}

// TestRedactedValuesHaveColumns: where the type knows the rules, nothing that they hash is in the rest.
func TestRedactedValuesHaveColumns(t *testing.T) {
	of := typeIn(t, definition{"Thing": kindOf(definition{"spec": definition{"type": "object", "properties": definition{
		"replicas": definition{"type": "integer"}, "since": definition{"type": "string", "format": "date-time"}, "on": definition{"type": "boolean"},
		"list": definition{"type": "array", "items": definition{"type": "number"}},
	}}})})
	plain := []byte(`{"spec":{"replicas":3,"since":"2026-11-23T17:00:00Z","on":true,"list":[1,2.5]}}`)
	object, narrowed := byRules(t, of, transform.Rules{Redact: []string{".spec"}}, plain)
	if message := newCodec(t, narrowed).restore(object); message[0] != 0 {
		t.Errorf("something of %s is in the rest: %q", object, message)
	}
	if message := newCodec(t, of).restore(object); message[0] == 0 {
		t.Errorf("nothing of %s is in the rest of a type that knows no rules: %q", object, message)
	}
}

// TestNamesStayApart: a record that the rules change in one place is another one there.
func TestNamesStayApart(t *testing.T) {
	all := documents(t)
	of := all["apps/v1"]
	deployment := typeOf(t, all, []byte(`{"apiVersion":"apps/v1","kind":"Deployment"}`))
	if of == nil || deployment == nil {
		t.Fatal("there is no Deployment")
	}
	narrowed, err := deployment.Narrow(transform.Rules{Redact: []string{".spec.template.spec.containers[*].ports[*].containerPort"}})
	must(t, err)
	schema := string(narrowed.Avro())
	for _, want := range []string{
		`"name":"io.k8s.api.apps.v1.Deployment"`, `"name":"io.k8s.api.apps.v1.Deployment_spec_template_spec_containers_ports"`, `"name":"io.k8s.api.core.v1.ContainerPort"`,
	} {
		if strings.Count(schema, want) != 1 {
			t.Errorf("the schema has %s %d times: %.3000s", want, strings.Count(schema, want), schema)
		}
	}
	newCodec(t, narrowed).restore([]byte(fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"ports":[{"containerPort":%s}]}]}}}}`, `"hmac-sha256:1"`)))
}
