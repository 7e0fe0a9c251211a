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
		if code := r.stop(); code != 0 {
			t.Fatalf("exit code %d:\n%s", code, r.out)
		}
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
				if n := told("lake.ndjson", "deleted", "namespaces/%b/"); n != 0 {
					t.Errorf("lake is told %d times that something of the other namespace is gone", n)
				}
			}},
		{"a resource less", "resources: [{resource: configmaps, namespaces: [%a]}]\n" + lake,
			[]string{"sink lake is not given %a/serviceaccounts any more: its objects (1) stay"},
			func(t *testing.T) {
				if n := told("lake.ndjson", "deleted", "serviceaccounts/robot"); n != 0 {
					t.Errorf("lake is told %d times that the account is gone", n)
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
			if len(c.says) == 0 && strings.Contains(r.Stdout, "note     sink") {
				t.Errorf("check says\n%s", r.Stdout)
			}
			running := d.start(usual("-f", "config.yaml", "--log-level", "info")...)
			running.logs("msg=watching")
			if strings.Contains(strings.Join(c.says, ""), "full snapshot") {
				running.logs("reason=lost")
			}
			if code := running.stop(); code != 0 {
				t.Fatalf("exit code %d:\n%s", code, running.out)
			}
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
