package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/format/decode"
	"github.com/kubecdc/kubecdc/internal/format/encode"
)

func changeOf(op change.Op, resource, version, object string) *decode.Change {
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
	v := newVersions()
	for _, c := range changes {
		line := lineOf(c)
		line.Diff = v.compare(c)
		must(t, p.Show(line))
	}
	must(t, p.Flush())
	return out.String()
}

func TestTailShowsWhatChanged(t *testing.T) {
	text := printed(t, false, false,
		changeOf(change.Added, "deployments.apps", "1", `{"metadata":{"resourceVersion":"1"},"spec":{"replicas":12345678901234567890,"containers":[{"image":"a"}],"old":true}}`),
		changeOf(change.Updated, "deployments.apps", "2", `{"metadata":{"resourceVersion":"2","labels":{"a.b/c":"x"}},"spec":{"replicas":12345678901234567891,"containers":[{"image":"b"}]}}`),
		changeOf(change.Deleted, "deployments.apps", "3", `{}`), changeOf(change.Added, "deployments.apps", "4", `{"spec":{}}`))
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

// patchOf is an update that is a patch.
func patchOf(resource, version, base, patch string) *decode.Change {
	c := changeOf(change.Updated, resource, version, "")
	c.Object, c.Patch, c.Base = nil, []byte(patch), base
	return c
}

func TestTailFoldsPatches(t *testing.T) {
	text := printed(t, false, false,
		patchOf("pods", "1", "0", `[{"op":"replace","path":"/spec/n","value":0}]`), // nobody knows of what
		changeOf(change.Added, "pods", "2", `{"metadata":{"resourceVersion":"2"},"spec":{"n":12345678901234567890,"old":true}}`),
		patchOf("pods", "3", "2", `[{"op":"replace","path":"/metadata/resourceVersion","value":"3"},{"op":"replace","path":"/spec/n","value":12345678901234567891}]`),
		patchOf("pods", "4", "3", `[{"op":"remove","path":"/spec/old"}]`),
		patchOf("pods", "6", "5", `[{"op":"replace","path":"/spec/n","value":6}]`), // of a version that is not here
		patchOf("pods", "7", "6", `[{"op":"replace","path":"/spec/n","value":7}]`),
		changeOf(change.Sync, "pods", "8", `{"spec":{"n":8}}`),
		patchOf("pods", "9", "8", `[{"op":"replace","path":"/spec/n","value":9}]`),
		patchOf("pods", "10", "9", `{}`), patchOf("pods", "11", "10", `[{"op":"remove","path":"/no"}]`))
	var lines []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "    ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	want := []string{"spec.n: 12345678901234567890 -> 12345678901234567891", "spec.old: true -> none", "spec.n: 8 -> 9"}
	if fmt.Sprint(lines) != fmt.Sprint(want) {
		t.Errorf("shown %q\nwant  %q", lines, want)
	}
	text = printed(t, true, false, patchOf("pods", "7", "6", `[{"op":"remove","path":"/a"}]`))
	if !strings.Contains(text, `"patch":[{"op":"remove","path":"/a"}],"base":"6"`) {
		t.Errorf("shown %s", text)
	}
}

func TestI9TailShowsNoSecret(t *testing.T) {
	before := `{"data":{"password":"b2xk"},"stringData":{"x":"hidden-a"},"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"b2xk"}},"type":"a"}`
	after := strings.NewReplacer("b2xk", "bmV3", "hidden-a", "hidden-b", `"a"`, `"b"`).Replace(before)
	for _, asJSON := range []bool{false, true} {
		text := printed(t, asJSON, false, changeOf(change.Added, "secrets", "1", before), changeOf(change.Updated, "secrets", "2", after),
			patchOf("secrets", "3", "2", `[{"op":"replace","path":"/data/password","value":"b2xk"}]`))
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
	must(t, err)
	c := changeOf(change.Updated, "pods", "2", string(body))
	c.ID.Key.Name, c.Reason = evil, change.Reason(evil)
	for _, asJSON := range []bool{false, true} {
		text := printed(t, asJSON, false, changeOf(change.Added, "pods", "1", `{}`), c)
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
	c := changeOf(change.Added, "pods", "1", `{}`)
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
		must(t, log.Follow(t.Context(), logOf(records)))
		if got := out.String(); strings.Contains(got, "--") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("of %s it says %s", asked, got)
		}
	}
}

// TestTailAsJSONHasAllThatTheRecordHas, beside what a line shows.
func TestTailAsJSONHasAllThatTheRecordHas(t *testing.T) {
	deleted := changeOf(change.Deleted, "deployments.apps", "3", `{"spec":{"replicas":3}}`)
	deleted.Snapshot, deleted.FinalStateUnknown = "300.1", true
	gap := changeOf(change.Gap, "deployments.apps", "4", "")
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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
