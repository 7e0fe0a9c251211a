package console

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/format/decode"
)

func changeOf(op change.Op, resource, version, object string) *decode.Change {
	return &decode.Change{
		ID:   change.ID{Cluster: "c", Resource: resource, Key: change.Key{Namespace: "shop", Name: "web"}, UID: "u-1", ResourceVersion: version, Op: op},
		Time: quarterPast(), Object: []byte(object),
	}
}

// printed is what a printer makes of the changes.
func printed(t *testing.T, style Style, changes ...*decode.Change) string {
	t.Helper()
	var out bytes.Buffer
	p := NewPrinter(On(&out), style)
	v := newVersions()
	for _, c := range changes {
		line := lineOf(c)
		if line.Diff = v.compare(c); style.JSON {
			line.Time = time.Time{} // which would have the zone of this host
		}
		must(t, p.Show(line))
	}
	must(t, p.Flush())
	return out.String()
}

// patchOf is an update that is a patch.
func patchOf(resource, version, base, patch string) *decode.Change {
	c := changeOf(change.Updated, resource, version, "")
	c.Object, c.Patch, c.Base = nil, []byte(patch), base
	return c
}

func TestI9TailShowsNoSecret(t *testing.T) {
	before := `{"data":{"password":"b2xk"},"stringData":{"x":"hidden-a"},"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"b2xk"}},"type":"a"}`
	after := strings.NewReplacer("b2xk", "bmV3", "hidden-a", "hidden-b", `"a"`, `"b"`).Replace(before)
	for _, asJSON := range []bool{false, true} {
		text := printed(t, Style{JSON: asJSON}, changeOf(change.Added, "secrets", "1", before), changeOf(change.Updated, "secrets", "2", after),
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
		text := printed(t, Style{JSON: asJSON}, changeOf(change.Added, "pods", "1", `{}`), c)
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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
