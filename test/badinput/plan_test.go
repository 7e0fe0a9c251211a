package badinput

import (
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestCheckSaysWhatAnotherConfigurationDoes: what it says before the start is what a reader of the sinks finds behind
// it. The start says the same.
func TestCheckSaysWhatAnotherConfigurationDoes(t *testing.T) {
	d := newDesk(t)
	namespaces := []string{newNamespace(t), newNamespace(t)}
	slices.Sort(namespaces)
	for _, namespace := range namespaces {
		createConfigMap(t, namespace, "kept")
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}
	if _, err := admin(t).CoreV1().ServiceAccounts(namespaces[0]).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const of = "resources: [{resource: configmaps, namespaces: [%a, %b]}, {resource: serviceaccounts, namespaces: [%a]}]\n"
	const lake = "sinks: [{name: lake, file: {path: lake.ndjson}}]\n"
	configured := func(text string) string {
		return strings.NewReplacer("%a", namespaces[0], "%b", namespaces[1]).Replace(text)
	}
	// told are how often the file has each kind of event of the namespace's objects of a kind.
	told := func(file, event, path string) int {
		text, err := os.ReadFile(d.path(file))
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, `"type":"dev.kubecdc.`+event+`"`) && strings.Contains(line, configured(path)) {
				count++
			}
		}
		return count
	}
	run := func() {
		t.Helper()
		r := d.start(usual("-f", "config.yaml", "--log-level", "info")...)
		r.logs("msg=watching")
		r.stopsWell()
	}
	d.write("config.yaml", configured(of+lake))
	run()
	for _, c := range []struct {
		what, config string
		says         []string
		after        func(t *testing.T)
	}{
		{"the same", of + lake, nil, func(t *testing.T) {}},
		{"a sink more", of + "sinks: [{name: lake, file: {path: lake.ndjson}}, {name: bus, file: {path: bus.ndjson}}]\n",
			[]string{"sink bus is new: it gets all objects of %a/configmaps, %a/serviceaccounts, %b/configmaps"},
			func(t *testing.T) {
				if n := told("bus.ndjson", "replaced", "configmaps/kept"); n != 2 {
					t.Errorf("bus has %d objects that were there, want 2", n)
				}
			}},
		{"a sink of another name", of + "sinks: [{name: lake, file: {path: lake.ndjson}}, {name: van, file: {path: van.ndjson}}]\n",
			[]string{"sink van is new: it gets all objects", "sink bus is not configured any more: its log stays as it is"},
			func(t *testing.T) {
				if n := told("van.ndjson", "replaced", "configmaps/kept"); n != 2 {
					t.Errorf("van has %d objects that were there, want 2", n)
				}
			}},
		{"a namespace less", strings.ReplaceAll(of, "[%a, %b]", "[%a]") + lake,
			[]string{"sink lake is not given %b/configmaps any more: its objects (1) stay as they are"},
			func(t *testing.T) {
				if gaps, n := told("lake.ndjson", "gap", `"reason":"left"`), told("lake.ndjson", "deleted", "namespaces/%b/"); gaps != 1 || n != 0 {
					t.Errorf("lake is told %d times that the other namespace has left, and %d times that something there is gone", gaps, n)
				}
			}},
		{"a namespace that has left", strings.ReplaceAll(of, "[%a, %b]", "[%a]") + lake, nil, func(t *testing.T) {
			if gaps := told("lake.ndjson", "gap", `"reason":"left"`); gaps != 1 {
				t.Errorf("lake is told %d times that the other namespace has left", gaps)
			}
		}},
		{"a resource less", "resources: [{resource: configmaps, namespaces: [%a]}]\n" + lake,
			[]string{"sink lake is not given %a/serviceaccounts any more: its objects (1) stay"},
			func(t *testing.T) {
				if gaps, n := told("lake.ndjson", "gap", `"reason":"left"`), told("lake.ndjson", "deleted", "serviceaccounts/robot"); gaps != 2 || n != 0 {
					t.Errorf("lake has %d gaps for what has left, want 2, and is told %d times that the account is gone", gaps, n)
				}
			}},
		{"what has left, deleted", "resources: [{resource: configmaps, namespaces: [%a]}]\n" + strings.Replace(lake, "}}", "}, onLeave: delete}", 1),
			[]string{
				"sink lake is not given %a/serviceaccounts any more: its objects (1) are deleted there",
				"sink lake is not given %b/configmaps any more: its objects (1) are deleted there",
			},
			func(t *testing.T) {
				robots, kept := told("lake.ndjson", "deleted", "serviceaccounts/robot"), told("lake.ndjson", "deleted", "namespaces/%b/configmaps/kept")
				if here := told("lake.ndjson", "deleted", "namespaces/%a/configmaps"); robots != 1 || kept != 1 || here != 0 {
					t.Errorf("the account ends %d times, the map %d times, want once; %d others end", robots, kept, here)
				}
			}},
		{"what has left, back", of + lake, []string{"sink lake is given %a/serviceaccounts, %b/configmaps again: it gets what it lacks"}, func(t *testing.T) {
			robots, kept := told("lake.ndjson", "replaced", "serviceaccounts/robot"), told("lake.ndjson", "replaced", "namespaces/%b/configmaps/kept")
			if here := told("lake.ndjson", "replaced", "namespaces/%a/configmaps/kept"); robots != 2 || kept != 2 || here != 1 {
				t.Errorf("what is back is told %d and %d times, want twice, and what was there %d times, want once", robots, kept, here)
			}
		}},
		{"another file, and a rule", "resources: [{resource: configmaps, namespaces: [%a], drop: [.data]}]\nsinks: [{name: lake, file: {path: moved.ndjson}}]\n",
			[]string{
				`drop of %a/configmaps has another value: it holds from the next change of each object`,
				`sink lake: file.path has another value: if it leads to another place, a gap of reason lost and a full snapshot follow there`,
			},
			func(t *testing.T) {
				if gaps, n := told("moved.ndjson", "gap", `"reason":"lost"`), told("moved.ndjson", "sync", "configmaps/kept"); gaps != 1 || n != 1 {
					t.Errorf("the new file has %d gaps and %d objects that were there, want one each", gaps, n)
				}
			}},
	} {
		t.Run(c.what, func(t *testing.T) {
			d.write("config.yaml", configured(c.config))
			r := d.exporter("check", "-f", "config.yaml", "--kubeconfig", "kubeconfig", "--state-dir", "state", "--listen", "127.0.0.1:0")
			for _, want := range c.says {
				if !strings.Contains(r.Stdout, "note     "+configured(want)) {
					t.Errorf("check says\n%swant\n%s", r.Stdout, configured(want))
				}
			}
			if len(c.says) == 0 && strings.Contains(r.Stdout, "note     sink lake") {
				t.Errorf("check says\n%s", r.Stdout)
			}
			running := d.start(usual("-f", "config.yaml", "--log-level", "info")...)
			running.logs("msg=watching")
			if strings.Contains(strings.Join(c.says, ""), "full snapshot") {
				eventually(t, "the full snapshot ends", func() bool { return told("moved.ndjson", "snapshot.end", `"reason":"lost"`) == 1 })
			}
			if strings.Contains(c.what, "back") {
				eventually(t, "the snapshots of what is back end", func() bool { return told("lake.ndjson", "snapshot.end", `"reason":"left"`) == 2 })
			}
			running.stopsWell()
			for _, want := range c.says {
				want, _, _ = strings.Cut(configured(want), ": its objects")
				if !strings.Contains(running.out.String(), want) {
					t.Errorf("the log does not say %s:\n%s", want, running.out)
				}
			}
			c.after(t)
		})
	}
}
