package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/decode"
	"github.com/kubecdc/kubecdc/internal/encode"
)

func told(op change.Op, resource, version, object string) *decode.Change {
	return &decode.Change{
		ID:   change.ID{Cluster: "c", Resource: resource, Key: change.Key{Namespace: "shop", Name: "web"}, UID: "u-1", ResourceVersion: version, Op: op},
		Time: time.UnixMilli(0), Object: []byte(object),
	}
}

// printed is what a printer makes of the changes.
func printed(t *testing.T, asJSON, colour bool, changes ...*decode.Change) string {
	t.Helper()
	var out bytes.Buffer
	p := NewPrinter(On(&out), Style{JSON: asJSON, Colour: colour})
	v := versions{last: map[string]any{}}
	for _, c := range changes {
		line := lineOf(c)
		line.Diff = v.compare(c)
		if err := p.Show(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTailShowsWhatChanged(t *testing.T) {
	text := printed(t, false, false,
		told(change.Added, "deployments.apps", "1", `{"metadata":{"resourceVersion":"1"},"spec":{"replicas":12345678901234567890,"containers":[{"image":"a"}],"old":true}}`),
		told(change.Updated, "deployments.apps", "2", `{"metadata":{"resourceVersion":"2","labels":{"a.b/c":"x"}},"spec":{"replicas":12345678901234567891,"containers":[{"image":"b"}]}}`),
		told(change.Deleted, "deployments.apps", "3", `{}`), told(change.Added, "deployments.apps", "4", `{"spec":{}}`))
	var lines []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "    ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	want := []string{
		`metadata.labels: none -> {"a.b/c":"x"}`, `spec.containers[0].image: "a" -> "b"`, "spec.old: true -> none",
		"spec.replicas: 12345678901234567890 -> 12345678901234567891",
	}
	if fmt.Sprint(lines) != fmt.Sprint(want) {
		t.Errorf("shown %q\nwant  %q", lines, want)
	}
}

func TestI9TailShowsNoSecret(t *testing.T) {
	before := `{"data":{"password":"b2xk"},"stringData":{"x":"hidden-a"},"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"b2xk"}},"type":"a"}`
	after := strings.NewReplacer("b2xk", "bmV3", "hidden-a", "hidden-b", `"a"`, `"b"`).Replace(before)
	for _, asJSON := range []bool{false, true} {
		text := printed(t, asJSON, false, told(change.Added, "secrets", "1", before), told(change.Updated, "secrets", "2", after))
		for _, value := range []string{"b2xk", "bmV3", "hidden-"} {
			if strings.Contains(text, value) {
				t.Errorf("%s is shown:\n%s", value, text)
			}
		}
		if !strings.Contains(text, "data.password") || strings.Count(text, "(redacted)") < 6 || !strings.Contains(text, `type`) {
			t.Errorf("the paths are not shown:\n%s", text)
		}
	}
}

// TestTailPassesNothingOnThatATerminalActsOn: escapes of both ranges, and what turns the direction of writing.
func TestTailPassesNothingOnThatATerminalActsOn(t *testing.T) {
	evil := "\x1b]0;owned\x07\u009b31m\u202egnp.exe\x7f\U000E0041"
	body, err := json.Marshal(map[string]string{"a": evil})
	if err != nil {
		t.Fatal(err)
	}
	c := told(change.Updated, "pods", "2", string(body))
	c.ID.Key.Name, c.Reason = evil, change.Reason(evil)
	for _, asJSON := range []bool{false, true} {
		text := printed(t, asJSON, false, told(change.Added, "pods", "1", `{}`), c)
		for _, r := range text {
			if acts(r) && r != '\n' {
				t.Errorf("json %v: %U goes to the terminal: %q", asJSON, r, text)
			}
		}
		if !strings.Contains(text, `\u001b`) || !strings.Contains(text, "owned") {
			t.Errorf("json %v: the text is not shown: %q", asJSON, text)
		}
		if asJSON {
			var l Line
			last := text[strings.Index(text, "\n")+1:]
			if err := json.Unmarshal([]byte(last), &l); err != nil || l.Name != evil {
				t.Errorf("the name comes back as %q, %v", l.Name, err)
			}
		}
	}
}

func TestTailColoursATerminalAlone(t *testing.T) {
	c := told(change.Added, "pods", "1", `{}`)
	if text := printed(t, false, true, c); !strings.Contains(text, "\x1b[32madded         \x1b[0m") {
		t.Errorf("no colour in %q", text)
	}
	if text := printed(t, true, true, c); strings.Contains(text, "\x1b") {
		t.Errorf("colour in %q", text)
	}
	none := func(string) (string, bool) { return "", false }
	if Colourful(new(bytes.Buffer), none) {
		t.Error("what is no terminal is coloured")
	}
}

func TestTailFilters(t *testing.T) {
	line := &Line{Op: "added", Resource: "deployments.apps", Namespace: "shop", Name: "web-1"}
	for _, c := range []struct {
		filter Filter
		takes  bool
	}{
		{Filter{}, true}, {Filter{Resources: []string{"deployments"}}, true}, {Filter{Resources: []string{"pods", "deployments.apps"}}, true},
		{Filter{Resources: []string{"deployments.extensions"}}, false}, {Filter{Namespace: "shop", Ops: []string{"added"}, Name: "web-*"}, true},
		{Filter{Namespace: "s"}, false}, {Filter{Ops: []string{"deleted"}}, false}, {Filter{Name: "web"}, false}, {Filter{Name: "[a"}, false},
	} {
		if c.filter.takes(line) != c.takes {
			t.Errorf("%+v takes the line: %v", c.filter, !c.takes)
		}
	}
}

// TestTailSaysThatALogHasNothingOfAResource, which may be a name that records do not have.
func TestTailSaysThatALogHasNothingOfAResource(t *testing.T) {
	records := stored(t, encode.Options{Transport: encode.NATS}, deployment(change.Added, "1", `{}`), node(change.Added, `{}`))
	for asked, want := range map[string]string{
		"deploy": "-- nothing here is of deploy; there are: deployments.apps, nodes\n", "nodes": "", "deployments": "",
	} {
		var out bytes.Buffer
		log := &Log{Printer: NewPrinter(On(&out), Style{}), Filter: Filter{Resources: []string{asked}}}
		if err := log.Follow(t.Context(), logOf(records)); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); strings.Contains(got, "--") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("of %s it says %s", asked, got)
		}
	}
}

// TestTailAsJSONHasAllThatTheRecordHas, beside what a line shows.
func TestTailAsJSONHasAllThatTheRecordHas(t *testing.T) {
	deleted := told(change.Deleted, "deployments.apps", "3", `{"spec":{"replicas":3}}`)
	deleted.Snapshot, deleted.FinalStateUnknown = "300.1", true
	gap := told(change.Gap, "deployments.apps", "4", "")
	gap.Object, gap.Data = nil, []byte(`{"reason":"gone"}`)
	text := printed(t, true, false, deleted, gap)
	for _, want := range []string{
		`"id":"` + deleted.ID.String() + `"`, `"snapshot":"300.1"`, `"finalStateUnknown":true`, `"object":{"spec":{"replicas":3}}`, `"data":{"reason":"gone"}`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("without %s:\n%s", want, text)
		}
	}
}
