package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubecdc/kubecdc/test/testcluster"
)

// served is what a wildcard's rig is made of.
type served struct {
	cluster    testcluster.Options
	configured string // all but the sinks
	file       string // what else is configured of the file
	sinks      string // beside it; entries of the configuration
	context    string // of the kubeconfig
}

// newWildcardRig is a cluster and an exporter with a file for a sink, configured by the text. Its tests run in
// parallel.
func newWildcardRig(t *testing.T, configured, context string) *rig {
	t.Helper()
	t.Parallel()
	return newRigOfWildcard(t, served{configured: configured, context: context})
}

func newRigOfWildcard(t *testing.T, w served) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.ArtifactDir(), ledger: newLedger(), began: time.Now()}
	r.cluster = testcluster.New(t, w.cluster)
	r.client = connect(t, r.cluster.RESTConfig())
	text := fmt.Sprintf("%sdiscovery: {interval: 1s}\nsinks:\n- {name: file, file: {path: %q}, %s}\n%s", w.configured, r.path(), w.file, w.sinks)
	if err := os.WriteFile(r.configPath(), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	x := &exporter{binary: built.Path(t), logPath: filepath.Join(r.dir, "exporter.log"), listen: fmt.Sprintf("127.0.0.1:%d", freePort(t))}
	x.args = []string{
		"run", "--kubeconfig", r.cluster.Kubeconfig(), "--context", w.context, "--config", r.configPath(),
		"--state-dir", filepath.Join(r.dir, "state"), "--listen", x.listen,
	}
	r.exporter, r.file = x, followFile(r.path())
	return r
}

// configPath is of what a wildcard's rig is configured by.
func (r *rig) configPath() string { return filepath.Join(r.dir, "config.yaml") }

// gadgets are custom resources of the group, of which there may be any number of kinds.
func gadgets(kind string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "gadgets.example.com", Version: "v1", Resource: kind + "s"}
}

// define returns when the API server knows of the kind; made returns when it serves it.
func (r *rig) define(kind string) {
	r.t.Helper()
	definition := widgetDefinition()
	definition["metadata"] = map[string]any{"name": kind + "s.gadgets.example.com"}
	title := strings.ToUpper(kind[:1]) + kind[1:]
	spec := definition["spec"].(map[string]any)
	spec["group"], spec["scope"] = "gadgets.example.com", "Cluster"
	spec["names"] = map[string]any{"plural": kind + "s", "singular": kind, "kind": title, "listKind": title + "List"}
	r.make(definitions(), definition)
}

// made makes an object of the kind as soon as it is served, and returns its uid.
func (r *rig) made(kind, name string) string {
	r.t.Helper()
	uid := ""
	eventually(r.t, deliveryLimit, "an object of "+kind+" is made", func() bool {
		object := map[string]any{"apiVersion": "gadgets.example.com/v1", "kind": strings.ToUpper(kind[:1]) + kind[1:], "metadata": map[string]any{"name": name}}
		made, err := r.client.Resource(gadgets(kind)).Create(r.t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
		if err == nil {
			uid = string(made.GetUID())
		}
		return err == nil
	})
	return uid
}

func (r *rig) undefine(kind string) {
	r.t.Helper()
	name := kind + "s.gadgets.example.com"
	if err := r.client.Resource(definitions()).Delete(r.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		r.t.Fatal(err)
	}
	eventually(r.t, deliveryLimit, name+" is gone", func() bool {
		_, err := r.client.Resource(definitions()).Get(r.t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// arrives returns when the file has a record of the uid and the operation.
func (r *rig) arrives(uid string, ops ...string) {
	r.t.Helper()
	r.file.await(r.t, r.exporter, "the "+strings.Join(ops, " or ")+" of "+uid, func(e *event) bool {
		return e.UID == uid && strings.Contains(strings.Join(ops, " "), e.op())
	})
}

// once fails where the file has not exactly one record of the uid and the operation.
func (r *rig) once(uid, op string) {
	r.t.Helper()
	n := 0
	for _, e := range r.file.all(r.t) {
		if e.UID == uid && e.op() == op {
			n++
		}
	}
	if n != 1 {
		r.t.Errorf("%s is told as %s %d times, want once", uid, op, n)
	}
}

// starts the exporter, and returns when it can be asked.
func (r *rig) starts() {
	r.t.Helper()
	from := len(r.exporter.log(r.t))
	r.exporter.start(r.t)
	eventually(r.t, deliveryLimit, "the exporter serves its status", func() bool {
		return strings.Contains(r.exporter.log(r.t)[from:], "exporter starts")
	})
}

// page is what /statusz says.
type page struct {
	Streams   map[string]streamStatus
	Ready     bool
	Discovery struct {
		LeftOut   map[string]string
		LastError string
	}
}

func (r *rig) page() page {
	r.t.Helper()
	var p page
	if err := json.Unmarshal([]byte(r.exporter.get(r.t, "/statusz")), &p); err != nil {
		r.t.Fatal(err)
	}
	return p
}

func (r *rig) eventuallyPage(what string, holds func(page) bool) {
	r.t.Helper()
	eventually(r.t, deliveryLimit, "/statusz says that "+what, func() bool { return holds(r.page()) })
}

// TestI4AResourceThatComesAndGoes is picked up without a restart, ends with the deletes that no watch told of, and
// begins again when it is defined anew, with a restart of the exporter in between or without.
func TestI4AResourceThatComesAndGoes(t *testing.T) {
	r := newWildcardRig(t, "resources: ['*.gadgets.example.com']\n", "dev")
	r.starts()
	r.eventuallyPage("the wildcard stands for nothing", func(p page) bool { return p.Ready && p.Discovery.LeftOut["*.gadgets.example.com"] != "" })
	r.define("gear")
	first := r.made("gear", "a")
	r.arrives(first, "added", "replaced")
	r.eventuallyPage("the inventory has it", func(page) bool {
		return r.exporter.metric(t, `kubecdc_inventory_objects{resource="gears.gadgets.example.com",sink="file"}`) == 1
	})

	r.undefine("gear")
	r.arrives(first, "deleted")
	r.eventuallyPage("gears are gone", func(p page) bool { _, found := p.Streams["gears.gadgets.example.com"]; return !found })
	if series := `resource="gears.gadgets.example.com"`; strings.Contains(r.exporter.get(t, "/metrics"), series) {
		t.Errorf("/metrics has %s although the stream is over", series)
	}
	r.define("gear")
	second := r.made("gear", "b")
	r.arrives(second, "added", "replaced")

	// It vanishes while nobody looks.
	r.exporter.stop(t)
	r.undefine("gear")
	r.starts()
	r.arrives(second, "deleted")
	r.eventuallyPage("gears are gone", func(p page) bool { _, found := p.Streams["gears.gadgets.example.com"]; return !found })
	r.once(first, "deleted")
	r.once(second, "deleted")
	r.define("gear")
	r.arrives(r.made("gear", "c"), "added", "replaced")
	r.exporter.stop(t)
	r.framed("gears.gadgets.example.com")
}

// framed judges that whatever a reconcile told lies between its begin and its end, and that deletes that nobody saw are
// announced by a gap.
func (r *rig) framed(resource string) {
	r.t.Helper()
	open, gap := "", false
	for _, e := range r.file.all(r.t) {
		if e.kind() != resource {
			continue
		}
		switch {
		case e.op() == "gap":
			gap = true
		case e.op() == "snapshot.begin":
			open = e.Snapshot
		case e.op() == "snapshot.end":
			open, gap = "", false
		case e.Snapshot != open:
			r.t.Errorf("outside of its snapshot:\n%s", &e)
		case e.FinalStateUnknown && !gap:
			r.t.Errorf("no gap announces\n%s", &e)
		}
	}
}

// TestI4I6HundredsOfDefinitions: of those that nobody has asked for yet, in a cluster in which much else changes, a
// first start tells no gap, though the API server serves no watch of theirs from before it was first asked. Those that
// come at once while the exporter runs are all streamed.
func TestI4I6HundredsOfDefinitions(t *testing.T) {
	r := newWildcardRig(t, "resources: ['*.gadgets.example.com']\n", "dev")
	early, late := numbered("gear", 12), numbered("part", 100)
	defineAll := func(kinds []string) {
		for _, kind := range kinds {
			r.define(strings.ReplaceAll(kind, "-", ""))
		}
	}
	defineAll(early)
	stop := r.bustle()
	r.starts()
	r.eventuallyPage("all are streams", func(p page) bool { return p.Ready && len(p.Streams) == len(early) })
	var uids []string
	fill := func(kinds []string, each int) {
		for i := 0; i < len(kinds); i += each {
			uids = append(uids, r.made(strings.ReplaceAll(kinds[i], "-", ""), "a"))
		}
		for _, uid := range uids {
			r.arrives(uid, "added", "replaced")
		}
	}
	fill(early, 1)
	stop()
	defineAll(late)
	fill(late, 10)
	r.eventuallyPage("all are watched", func(p page) bool { return p.Ready && states(p)["watching"] == len(early)+len(late) })
	r.exporter.stop(t)
	for _, e := range r.file.all(t) {
		if e.op() == "gap" {
			t.Errorf("a first start tells of a gap:\n%s", &e)
		}
	}
	for _, uid := range uids {
		if told := r.toldTo(r.file, uid); told != "added" && told != "replaced" {
			t.Errorf("object %s is told as %q, want once", uid, told)
		}
	}
}

// bustle changes something else, again and again until stop.
func (r *rig) bustle() (stop func()) {
	maps := r.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
	ctx, cancel := context.WithCancel(r.t.Context())
	var running sync.WaitGroup
	for hand := range hands {
		running.Go(func() {
			name := fmt.Sprint("bustle-", hand)
			for i := 0; ctx.Err() == nil; i++ {
				object := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"i": fmt.Sprint(i)}}
				_, err := maps.Apply(ctx, name, &unstructured.Unstructured{Object: object}, metav1.ApplyOptions{FieldManager: "bustle"})
				if err != nil && ctx.Err() == nil {
					r.t.Errorf("change a config map: %v", err)
					return
				}
			}
		})
	}
	return func() { cancel(); running.Wait() }
}

// TestI4ADefinitionThatIsChangedAndDeleted: the API server forgets the history of what is defined in another way, so
// that is a gap, which says why. The end of what is not defined any more is one record after the deletes, no gap, and
// one line of the log.
func TestI4ADefinitionThatIsChangedAndDeleted(t *testing.T) {
	r := newWildcardRig(t, "resources: ['*.gadgets.example.com']\n", "dev")
	r.define("gear")
	var uids []string
	for _, name := range []string{"a", "b", "c"} {
		uids = append(uids, r.made("gear", name))
	}
	r.starts()
	for _, uid := range uids {
		r.arrives(uid, "replaced")
	}
	r.eventuallyPage("gears are watched", func(p page) bool { return p.Streams["gears.gadgets.example.com"].State == "watching" })
	r.redefine("gear")
	const gears = "gears.gadgets.example.com"
	tells := func(op, reason string) func(e *event) bool {
		return func(e *event) bool { return e.kind() == gears && e.op() == op && e.Reason == reason }
	}
	r.file.await(t, r.exporter, "the gap of a changed definition", tells("gap", "redefined"))
	r.file.await(t, r.exporter, "the end of its comparison", tells("snapshot.end", "redefined"))
	compared := len(r.file.all(t))
	r.exporter.awaitLine(t, "reason=redefined")

	from := len(r.exporter.log(t))
	r.undefine("gear")
	r.file.await(t, r.exporter, "the end of gears", tells("snapshot.end", "removed"))
	r.exporter.awaitLine(t, "stream ended: the definition of its resource was deleted")
	r.exporter.stop(t)
	var told []string
	for _, e := range r.file.all(t)[compared:] {
		told = append(told, e.op())
	}
	if got := strings.Join(told, " "); got != "deleted deleted deleted snapshot.end" {
		t.Errorf("the end of gears is told as %s", got)
	}
	if log := r.exporter.log(t)[from:]; strings.Contains(log, "WARN") {
		t.Errorf("the log warns:\n%s", log)
	}
}

// redefine changes the definition's schema.
func (r *rig) redefine(kind string) {
	r.t.Helper()
	const patch = `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/description","value":"another one"}]`
	_, err := r.client.Resource(definitions()).Patch(r.t.Context(), kind+"s.gadgets.example.com", types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
}
