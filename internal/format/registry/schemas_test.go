package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/format/typed"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// fake is a registry whose answers a test chooses.
type fake struct {
	mu      sync.Mutex
	first   int                 // of its ids
	schemas map[string][]string // by subject
	refuse  int                 // the status of each registration; 0 registers
	only    string              // the subjects that are refused begin with it; "" is all
	away    bool
	hangs   chan struct{} // nil, or closed when it answers
}

func (f *fake) id(schema string) int {
	id := f.first
	for _, one := range schema {
		id = (id*31 + int(one)) % 1_000_000
	}
	return id
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	hangs := f.hangs
	f.mu.Unlock()
	if hangs != nil {
		<-hangs
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	part := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	said := struct{ Schema string }{}
	_ = json.NewDecoder(r.Body).Decode(&said) // a question has none
	subject := part[1]
	if part[0] == "compatibility" {
		subject = part[2]
	}
	all := f.schemas[subject]
	answer := func(code int, body any) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body)
	}
	known := -1
	for i, one := range all {
		if one == said.Schema {
			known = i
		}
	}
	version := func(i int) map[string]any {
		return map[string]any{"subject": subject, "version": i + 1, "id": f.id(all[i]), "schema": all[i]}
	}
	switch {
	case f.away:
		answer(http.StatusServiceUnavailable, map[string]any{"message": "starting"})
	case part[0] == "compatibility":
		answer(http.StatusOK, map[string]any{"is_compatible": f.refuse == 0, "messages": []string{"field x is incompatible"}})
	case r.Method == http.MethodGet && len(all) > 0:
		answer(http.StatusOK, version(len(all)-1))
	case r.Method == http.MethodPost && len(part) == 2 && known >= 0:
		answer(http.StatusOK, version(known))
	case r.Method == http.MethodPost && len(part) == 3 && f.refuse != 0 && strings.HasPrefix(subject, f.only):
		answer(f.refuse, map[string]any{"error_code": f.refuse, "message": "field x is incompatible"})
	case r.Method == http.MethodPost && len(part) == 3:
		f.schemas[subject] = append(all, said.Schema)
		answer(http.StatusOK, map[string]any{"id": f.id(said.Schema)})
	default:
		answer(http.StatusNotFound, map[string]any{"error_code": 40401, "message": "no such subject"})
	}
}

// served are types that a test changes.
type served struct {
	fields []string
	err    error
}

func (s *served) Of(context.Context, change.Resource, string) (*typed.Type, string, error) {
	var fields []typed.Field
	for _, name := range s.fields {
		fields = append(fields, typed.Field{JSON: name, Type: typed.Of(typed.Long)})
	}
	return typed.NewRecord("T", fields), fmt.Sprint(s.fields), s.err
}

// heard is what was told last of a resource.
type heard struct {
	known, replaced int
	why             error
	forGood         bool
}

func (h *heard) SchemaKnown(_, _ string, _ sink.Schema, behind error)  { h.known++; h.why = behind }
func (h *heard) SchemaWaits(_, _ string, why error, forGood bool)      { h.why, h.forGood = why, forGood }
func (h *heard) SchemaReplaced(string, string, sink.Schema, time.Time) { h.replaced++ }
func (h *heard) SchemaForgotten(string, string)                        {}

type rig struct {
	*Schemas
	t        *testing.T
	registry *fake
	types    *served
	heard    *heard
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, registry: &fake{schemas: map[string][]string{}}, types: &served{fields: []string{"a"}}, heard: &heard{}}
	server := httptest.NewServer(r.registry)
	t.Cleanup(server.Close)
	client, err := NewClient(Login{URLs: []string{server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	r.Schemas = NewSchemas(Options{
		Client: client, Types: r.types, Format: encode.FormatDebezium, Register: true, Interval: time.Second, Observer: r.heard,
		Subjects: func(*change.Resource) (key, value string) { return "t-key", "t-value" },
	})
	return r
}

func pods() *change.Resource { return &change.Resource{Version: "v1", Name: "pods", Kind: "Pod"} }

// look looks at the schema as if it were due, its ids too.
func (r *rig) look() *encode.Schema {
	r.Of(pods())
	e := r.known["pods"]
	e.due, e.confirmed = time.Time{}, time.Time{}
	r.round(r.t.Context())
	return r.Of(pods())
}

// TestARegistryThatIsAwayIsWaitedFor at the start, and not later.
func TestARegistryThatIsAwayIsWaitedFor(t *testing.T) {
	r := newRig(t)
	r.registry.away = true
	if r.look() != nil || r.heard.why == nil || r.heard.forGood {
		t.Fatalf("the start does not wait: %+v", r.heard)
	}
	r.registry.away = false
	before := r.look()
	if before == nil || r.heard.why != nil {
		t.Fatalf("nothing is registered: %v", r.heard.why)
	}
	r.registry.away, r.types.fields = true, []string{"a", "b"}
	if r.look() != before || r.heard.why == nil {
		t.Errorf("a registry that went away changes the schema, or is not told of: %v", r.heard.why)
	}
}

// TestARefusalHasTheRegistrysWords, and ends no stream that has a version.
func TestARefusalHasTheRegistrysWords(t *testing.T) {
	for _, code := range []int{401, 403, 409, 422} {
		r := newRig(t)
		r.registry.refuse = code
		if r.look() != nil || !r.heard.forGood || !strings.Contains(r.heard.why.Error(), "t-key") || !strings.Contains(r.heard.why.Error(), "field x is incompatible") {
			t.Errorf("status %d: %v", code, r.heard.why)
		}
		r.registry.refuse = 0
		before := r.look()
		r.registry.refuse, r.types.fields = code, []string{"b"}
		if after := r.look(); before == nil || after != before || r.heard.why == nil {
			t.Errorf("status %d: a newer version that is refused changes the older one: %v", code, r.heard.why)
		}
	}
}

// TestVersionsGrow, and what a registry has is where a new process goes on.
func TestVersionsGrow(t *testing.T) {
	r := newRig(t)
	first := r.look()
	r.types.fields = []string{"b"}
	second := r.look()
	if first.Value == second.Value || len(r.registry.schemas["t-value"]) != 2 || first.Key != second.Key {
		t.Fatalf("ids are %+v and %+v of %d versions", first, second, len(r.registry.schemas["t-value"]))
	}
	again := newRig(t)
	again.registry.schemas, again.types.fields = r.registry.schemas, []string{"a"}
	if schema := again.look(); schema.Value != second.Value || len(again.registry.schemas["t-value"]) != 2 {
		t.Errorf("a new process has %+v", schema)
	}
	again.Register = false
	again.types.err = context.DeadlineExceeded
	if schema := again.look(); schema == nil {
		t.Error("an API server that does not tell takes the schema away")
	}
}

// TestNothingHasAnIdOfARegistryThatWasReplaced, once that is known.
func TestNothingHasAnIdOfARegistryThatWasReplaced(t *testing.T) {
	r := newRig(t)
	before := *r.look()
	r.registry.schemas, r.registry.first, r.registry.refuse = map[string][]string{}, 7, 403
	if r.look() != nil || r.heard.replaced != 1 {
		t.Fatalf("an id of before is used, told %d times", r.heard.replaced)
	}
	r.registry.refuse = 0
	if after := r.look(); after == nil || after.Value == before.Value || after.Key == before.Key {
		t.Errorf("the ids are %+v, before %+v", after, before)
	}
}

// TestWhatOthersRegisteredIsLeftAlone, and told.
func TestWhatOthersRegisteredIsLeftAlone(t *testing.T) {
	r := newRig(t)
	r.registry.schemas["t-value"] = []string{`{"type":"record","name":"Other","fields":[]}`}
	if r.look() != nil || !r.heard.forGood || !strings.Contains(r.heard.why.Error(), "not the exporter's") {
		t.Errorf("told was %v", r.heard.why)
	}
	r.registry.schemas["t-value"] = []string{`{"$schema":"http://json-schema.org/draft-07/schema#","title":"T","type":"object"}`}
	if r.look() != nil || !strings.Contains(r.heard.why.Error(), "not the exporter's") {
		t.Errorf("told of another form was %v", r.heard.why)
	}
}

// TestNestedObjectsDoNotBecomeColumns in the subject that they have, neither in a run nor in its plan.
func TestNestedObjectsDoNotBecomeColumns(t *testing.T) {
	r := newRig(t)
	of := typed.NewRecord("T", []typed.Field{{JSON: "spec", Type: &typed.Type{Kind: typed.Map, Elem: typed.Of(typed.Long)}}})
	r.registry.schemas["t-value"] = []string{string(encode.ValueType(encode.FormatDebezium, pods(), of, false).Avro())}
	r.Columns = true
	const want = "kafka.registry.columns is json: choose another"
	if r.look() != nil || !r.heard.forGood || !strings.Contains(r.heard.why.Error(), want) {
		t.Errorf("told was %v", r.heard.why)
	}
	if _, err := r.Plan(t.Context(), pods()); !isRefused(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("the plan is %v", err)
	}
	r.registry.schemas["t-value"] = []string{string(encode.ValueType(encode.FormatDebezium, pods(), of, true).Avro())}
	if schema := r.look(); schema == nil || !schema.Columns {
		t.Errorf("the schema of columns is %+v, told was %v", schema, r.heard.why)
	}
}

// TestAPlanIsWhatARunDoes, and registers nothing.
func TestAPlanIsWhatARunDoes(t *testing.T) {
	r := newRig(t)
	plan, err := r.Plan(t.Context(), pods())
	if err != nil || plan.Version != 0 || !plan.Value.IsNew() || len(r.registry.schemas) != 0 {
		t.Fatalf("the first plan is %+v, %v", plan, err)
	}
	r.Register = false
	if _, err = r.Plan(t.Context(), pods()); !isRefused(err) || !strings.Contains(err.Error(), "t-key") {
		t.Errorf("the plan of keys that nobody has registered is %v", err)
	}
	r.Register = true
	r.registry.schemas["t-key"], r.registry.refuse = []string{"other"}, http.StatusConflict
	if _, err = r.Plan(t.Context(), pods()); !isRefused(err) || !strings.Contains(err.Error(), "t-key") {
		t.Errorf("the plan of keys that are refused is %v", err)
	}
	delete(r.registry.schemas, "t-key")
	r.registry.refuse = 0
	schema := r.look()
	if plan, err = r.Plan(t.Context(), pods()); err != nil || plan.Key.ID != schema.Key || plan.Version != 1 || plan.Value.IsNew() || len(plan.Differences) != 0 {
		t.Errorf("the plan of what is registered is %+v, %v", plan, err)
	}
	r.types.fields = []string{"b"}
	want := []typed.Difference{{Path: ".before.a", Older: "integer"}, {Path: ".before.b", Newer: "integer"}}
	if plan, err = r.Plan(t.Context(), pods()); err != nil || !plan.Value.IsNew() || !slices.Equal(plan.Differences, want) {
		t.Errorf("the plan of another type is %+v, %v", plan, err)
	}
	r.registry.refuse = http.StatusConflict
	if plan, err = r.Plan(t.Context(), pods()); !isRefused(err) || !strings.Contains(err.Error(), "t-value") ||
		!strings.Contains(err.Error(), "field x is incompatible") || plan == nil || len(r.registry.schemas["t-value"]) != 1 {
		t.Errorf("the plan of what is refused is %+v, %v", plan, err)
	}
}

// admitted says of which of the two resources records can be encoded.
func (r *rig) admitted() string {
	var all []string
	for _, name := range []string{"pods", "services"} {
		if r.Admits(&change.Stream{Resource: change.Resource{Version: "v1", Name: name, Kind: "Kind"}}) {
			all = append(all, name)
		}
	}
	return strings.Join(all, " ")
}

// awaitAdmitted waits until records of these can be encoded, and of no others.
func (r *rig) awaitAdmitted(want string) {
	r.t.Helper()
	limit := time.After(time.Minute)
	for changed := r.Changed(); r.admitted() != want; changed = r.Changed() {
		select {
		case <-changed:
		case <-limit:
			r.t.Fatalf("admitted is %q, want %q", r.admitted(), want)
		}
	}
}

// TestARegistryHoldsUpNobodyButWhoeverNeedsAnID: it is slow, away, or refuses a schema. Who has a version goes on, and
// who waits is told as soon as there is one.
func TestARegistryHoldsUpNobodyButWhoeverNeedsAnID(t *testing.T) {
	for what, fault := range map[string]func(f *fake){
		"slow": func(f *fake) { f.hangs = make(chan struct{}) },
		"away": func(f *fake) { f.away = true },
		"401":  func(f *fake) { f.refuse, f.only = http.StatusUnauthorized, "services" },
		"409":  func(f *fake) { f.refuse, f.only = http.StatusConflict, "services" },
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t)
			r.Subjects = func(resource *change.Resource) (key, value string) {
				return resource.Name + "-key", resource.Name + "-value"
			}
			r.Of(pods())
			r.round(t.Context())
			r.registry.mu.Lock()
			fault(r.registry)
			hangs := r.registry.hangs
			r.registry.mu.Unlock()
			began := time.Now()
			if got := r.admitted(); got != "pods" || time.Since(began) > time.Second {
				t.Fatalf("admitted is %q, after %s", got, time.Since(began))
			}
			rounds := make(chan struct{})
			go func() {
				defer close(rounds)
				r.round(t.Context())
			}()
			if hangs == nil {
				<-rounds
				if r.admitted() != "pods" || r.heard.why == nil || r.heard.forGood != (what != "away") {
					t.Fatalf("admitted is %q, told %+v", r.admitted(), r.heard)
				}
			}
			r.registry.mu.Lock()
			r.registry.hangs, r.registry.away, r.registry.refuse = nil, false, 0
			r.registry.mu.Unlock()
			if hangs != nil {
				close(hangs)
			}
			<-rounds
			r.mu.Lock()
			for _, e := range r.known {
				e.due = time.Time{}
			}
			r.mu.Unlock()
			r.round(t.Context())
			r.awaitAdmitted("pods services")
		})
	}
}
