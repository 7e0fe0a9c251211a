package consumers

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// evolvingConfiguration is of one resource with a schema, in two formats, and without one.
const evolvingConfiguration = `
cluster: typed
resources: [widgets.example.com]
discovery: {interval: 1s}
state: {dir: %[1]s/state}
listen: 127.0.0.1:0
sinks:
- {name: avro, kafka: {brokers: [%[2]q], topic: "avro.{resource}", partitions: 3, registry: {url: %[3]q, compatibility: full_transitive}}, format: debezium}
- {name: object, kafka: {brokers: [%[2]q], topic: "object.{resource}", partitions: 3, registry: {url: %[3]q, compatibility: backward_transitive}}, format: object}
- {name: plain, kafka: {brokers: [%[2]q], topic: "plain.{resource}", partitions: 3}, format: object}
`

// fewChanges are those of a CRD in a usual run. E2E_SCHEMA_CHANGES has another number.
const fewChanges = 4

// evolution is a CRD that changes at random, its objects, and what the API server answered to their writers.
type evolution struct {
	*typedStage
	*rand.Rand
	fields map[string]string // types by name
	added  int               // fields, ever
	states map[string][]any  // by resourceVersion: what the server answered, and what plain records have
	last   map[string]string // the version of an object's last one
}

// fieldTypes are schemas, and values of each.
func fieldTypes() map[string][]string {
	return map[string][]string{
		`{"type":"integer"}`:                                          {`7`, `-9223372036854775808`, `9007199254740993`},
		`{"type":"string"}`:                                           {`"text"`, `"é \" 😀"`, `"80"`, `""`},
		`{"type":"number"}`:                                           {`1.5`, `0.1`, `100000`},
		`{"type":"boolean"}`:                                          {`true`, `false`},
		`{"type":"string","format":"date-time"}`:                      {`"2026-11-24T10:00:00Z"`, `"2026-11-24T10:00:00.5+01:00"`},
		`{"x-kubernetes-int-or-string":true}`:                         {`80`, `"80"`, `"http"`},
		`{"type":"array","items":{"type":"string"}}`:                  {`[]`, `["a","b"]`},
		`{"type":"object","additionalProperties":{"type":"integer"}}`: {`{}`, `{"a":1,"b-c":2}`},
		`{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"type":"integer"}}}`:                                                      {`{"a":1}`, `{"a":2,"more":{"deep":[null,1.50]}}`},
		`{"type":"array","items":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"name":{"type":"string"},"port":{"type":"integer"}}}}`: {`[{"name":"a"},{"port":1}]`},
		`{"type":"object","x-kubernetes-preserve-unknown-fields":true}`:                                                                                            {`{"x":[1,{"y":null}]}`},
	}
}

func pick[T any](e *evolution, of []T) T { return of[e.IntN(len(of))] }

// change adds, removes, renames, or retypes fields, and returns the name of one that is new, "" of none.
func (e *evolution) change() (name string) {
	all, known := slices.Sorted(maps.Keys(fieldTypes())), slices.Sorted(maps.Keys(e.fields))
	begin := func() {
		e.added++
		name = fmt.Sprintf("field%d%s", e.added, pick(e, []string{"", "-a", "_b", ".c"}))
	}
	switch what := e.IntN(4); {
	case what == 0 || len(known) < 3:
		begin()
		e.fields[name] = pick(e, all)
	case what == 1:
		delete(e.fields, pick(e, known))
	case what == 2:
		begin()
		old := pick(e, known)
		e.fields[name] = e.fields[old]
		delete(e.fields, old)
	default:
		e.fields[pick(e, known)] = pick(e, all)
	}
	return name
}

// properties are the fields as a CRD has them.
func (e *evolution) properties(t *testing.T) string {
	t.Helper()
	schemas := map[string]json.RawMessage{}
	for name, of := range e.fields {
		schemas[name] = json.RawMessage(of)
	}
	text, err := json.Marshal(schemas)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// write replaces an object, or makes it, with most of the fields, and some that no schema knows. The server may still
// validate by the schema of before.
func (e *evolution) write(t *testing.T) {
	t.Helper()
	e.look(t)
	name := fmt.Sprintf("w%d", e.IntN(5))
	spec := []string{`"unknown":{"n":1.50,"at":[null]}`}
	for _, field := range slices.Sorted(maps.Keys(e.fields)) {
		if e.IntN(4) > 0 {
			spec = append(spec, fmt.Sprintf("%q:%s", field, pick(e, fieldTypes()[e.fields[field]])))
		}
	}
	text := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"` + name + `"},"spec":{` + strings.Join(spec, ",") + `}}`
	eventually(t, func() error {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON([]byte(text)); err != nil {
			return err
		}
		on := e.w.on(widgets, "default")
		answer, err := on.Create(t.Context(), object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			patch := fmt.Sprintf(`[{"op":"replace","path":"/spec","value":{%s}}]`, strings.Join(spec, ","))
			answer, err = on.Patch(t.Context(), name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
		}
		if err == nil {
			e.answered(t, answer)
		}
		return err
	})
}

func (e *evolution) answered(t *testing.T, answer *unstructured.Unstructured) {
	t.Helper()
	e.given(t, answer)
	e.last[answer.GetName()] = answer.GetResourceVersion()
}

// look notes how the server gives the objects now: a schema that has changed prunes fields of versions from before.
func (e *evolution) look(t *testing.T) {
	t.Helper()
	list, err := e.w.on(widgets, "default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		e.given(t, &list.Items[i])
	}
}

// given notes a state that the server gives of a version.
func (e *evolution) given(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	object.SetManagedFields(nil)
	text, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	e.states[object.GetResourceVersion()] = append(e.states[object.GetResourceVersion()], spelled(t, text))
}

// awaitField waits until the newest versions of both formats have the field.
func (e *evolution) awaitField(t *testing.T, name string) {
	t.Helper()
	for _, subject := range []string{"avro.widgets.example.com-value", "object.widgets.example.com-value"} {
		eventually(t, func() error {
			newest, err := e.schemas.SchemaByVersion(t.Context(), subject, -1)
			if err == nil && !strings.Contains(newest.Schema.Schema, `"`+name+`"`) {
				err = fmt.Errorf("version %d of %s lacks %s\n%s", newest.Version, subject, name, e.x.log())
			}
			return err
		})
	}
}

// TestEachRecordIsReadByItsSchemaWhileACRDChanges at random, objects are written, and the exporter is killed: each
// record has by the schema of its id exactly what the server answered to the writer, or what it gives since its schema
// prunes fields, as a look at it or a plain record says. The last version of each object is there.
func TestEachRecordIsReadByItsSchemaWhileACRDChanges(t *testing.T) {
	changes := fewChanges
	if more := os.Getenv("E2E_SCHEMA_CHANGES"); more != "" {
		var err error
		if changes, err = strconv.Atoi(more); err != nil {
			t.Fatalf("E2E_SCHEMA_CHANGES: %v", err)
		}
	}
	e := &evolution{
		typedStage: newTypedStage(t, evolvingConfiguration), Rand: rand.New(rand.NewPCG(21, uint64(changes))),
		fields: map[string]string{}, states: map[string][]any{}, last: map[string]string{},
	}
	e.w.define()
	first, err := e.w.on(widgets, "default").Get(t.Context(), "first", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e.answered(t, first)
	e.x.start(t)
	for i := range changes {
		added := e.change()
		e.describe(t, e.properties(t))
		for range 3 {
			e.write(t)
		}
		if i%3 == 1 {
			e.x.process.Kill()
			e.write(t)
			e.x.start(t)
		}
		if _, still := e.fields[added]; still {
			e.awaitField(t, added)
		}
		for range 2 {
			e.write(t)
		}
	}
	e.x.settle(t)
	e.x.stop(t)
	answers := len(e.states)
	for _, r := range e.kafka.ConsumeFast(t, "plain."+widgets, kafka.JudgeOptions{}) {
		if r.Value != nil {
			state := spelled(t, r.Value)
			e.states[versionOf(state)] = append(e.states[versionOf(state)], state)
		}
	}
	log := newTypedLog(t, e.typedStage)
	for _, topic := range []string{"avro.", "object."} {
		t.Run(topic, func(t *testing.T) { e.judge(t, log, topic) })
	}
	for _, name := range []string{"avro.", "object."} {
		versions, err := e.schemas.SubjectVersions(t.Context(), name+"widgets.example.com-value")
		t.Logf("%d changes, %d answers, %d versions of %s, %v", changes, answers, len(versions), name, err)
	}
}

// versionOf is the object's version, "" of what is no object.
func versionOf(object any) string {
	metadata, _ := object.(map[string]any)["metadata"].(map[string]any)
	version, _ := metadata["resourceVersion"].(string)
	return version
}

// judge restores each record of the topic, and looks for the last answer of each object among them. When a CRD changes,
// the server forgets its history, so some answers before may lie in a gap.
func (e *evolution) judge(t *testing.T, log *typedLog, prefix string) {
	records := e.kafka.ConsumeFast(t, prefix+widgets, kafka.JudgeOptions{})
	found := map[string]bool{}
	for _, text := range log.restore(t, records) {
		if text == nil {
			continue
		}
		object := spelled(t, text).(map[string]any)
		if prefix == "avro." {
			object = object["after"].(map[string]any)
		}
		version := versionOf(object)
		if !slices.ContainsFunc(e.states[version], func(state any) bool { return reflect.DeepEqual(any(object), state) }) {
			t.Errorf("version %s is\n%v, want\n%v", version, object, e.states[version])
		}
		found[version] = true
	}
	for name, version := range e.last {
		if !found[version] {
			t.Errorf("version %s of %s is missing: %v", version, name, e.states[version])
		}
	}
	t.Logf("%d of %d versions are in %d records", len(found), len(e.states), len(records))
}
