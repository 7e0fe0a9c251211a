package validate

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/audit"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/shape/involved"
	"github.com/kubecdc/kubecdc/schema"
)

// part is a part of a schema.
type part struct {
	Enum        []string
	Description string
	Properties  map[string]part
	Defs        map[string]part `json:"$defs"`
}

func (p part) at(path ...string) []string {
	for _, name := range path {
		p = p.Properties[name]
	}
	return slices.Sorted(slices.Values(p.Enum))
}

func read(t *testing.T, name string) (p part) {
	t.Helper()
	text, err := schema.Files.ReadFile(name + ".json")
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		t.Fatal(err)
	}
	if rest := strings.Replace(string(text), "https://json-schema.org/draft/2020-12/schema", "", 1); strings.Contains(rest, "http") {
		t.Errorf("schema %s has an address in it", name)
	}
	return p
}

// TestTheSchemaOfAnActorSaysWhatIsNotProven: what a client can claim, and what no answer of the API server says.
func TestTheSchemaOfAnActorSaysWhatIsNotProven(t *testing.T) {
	for field, word := range map[string]string{"sourceIPs": "X-Forwarded-For", "op": "finalizers"} {
		for of, fields := range map[string]part{"actor": read(t, "actor"), "cloudevent": read(t, CloudEvent).Defs["actor"]} {
			if got := fields.Properties[field].Description; !strings.Contains(got, word) {
				t.Errorf("%s of %s says %q, and nothing of %s", field, of, got, word)
			}
		}
	}
}

// TestSchemasNameWhatThereIs: operations, reasons and the like are those of the code, and no schema needs a network.
func TestSchemasNameWhatThereIs(t *testing.T) {
	var all, ofStreams []string
	for op := change.Added; op <= change.Resolved; op++ {
		if op != change.Bookmark {
			all = append(all, "dev.kubecdc."+op.String())
		}
	}
	ofStreams = slices.DeleteFunc(slices.Clone(all), func(op string) bool { return op == "dev.kubecdc.actor" })
	reasons := change.Reasons()
	gaps := slices.DeleteFunc(slices.Clone(reasons), func(r change.Reason) bool { return !r.Gap() && r != change.Policy })
	for _, c := range []struct {
		schema string
		path   []string
		want   any
	}{
		{CloudEvent, []string{"type"}, all},
		{CloudEventHeaders, []string{"type"}, ofStreams},
		{CloudEvent, []string{"reason"}, reasons},
		{CloudEventHeaders, []string{"reason"}, reasons},
		{SnapshotBegin, []string{"reason"}, reasons},
		{SnapshotEnd, []string{"reason"}, reasons},
		{Gap, []string{"reason"}, gaps},
		{CloudEvent, []string{"replayed"}, []change.Replayed{change.Current, change.History}},
		{Debezium, []string{"source", "replayed"}, []change.Replayed{change.Current, change.History}},
		{Debezium, []string{"involved", "unknown"}, involved.Unknowns()},
		{"actor", []string{"certainty"}, []audit.Certainty{audit.Proven, audit.Likely, audit.Possible}},
	} {
		var want []string
		text, err := json.Marshal(c.want)
		if err == nil {
			err = json.Unmarshal(text, &want)
		}
		if err != nil {
			t.Fatal(err)
		}
		if slices.Sort(want); !slices.Equal(read(t, c.schema).at(c.path...), want) {
			t.Errorf("schema/%s.json at %v has %q, want %q", c.schema, c.path, read(t, c.schema).at(c.path...), want)
		}
	}
}
