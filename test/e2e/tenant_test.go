package e2e

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestI4ATenantStopsNothing: who may make and label pods, roles, config maps and custom resources in one namespace, and
// reach the exporter's port, does everything at random that was ever found to hurt, while others write. Each sink ends
// with what the API server has, but for what a gap of its key announces; the same process runs all the time, in bounded
// memory, and says that it is well.
func TestI4ATenantStopsNothing(t *testing.T) {
	r := newRig(t)
	r.make(core("namespaces"), coreObject("Namespace", tenantNamespace, nil))
	r.writer.populate(t)
	r.exporter.start(t)
	r.writer.start(t)
	var crowd crowd
	defer func() { crowd.leave() }()
	tenant := &tenant{t: t, r: r, random: rand.New(rand.NewPCG(seed(t), 99)), made: map[string]schema.GroupVersionResource{}}
	deadline := time.Now().Add(time.Duration(number(t, "E2E_TENANT", 30)) * time.Second)
	for n := 0; time.Now().Before(deadline); n++ {
		tenant.act()
		if n%20 == 0 {
			crowd.come(r.exporter.listen)
		}
		if !r.exporter.runs() {
			t.Fatalf("the exporter has ended:\n%s", r.exporter.lastLines(t))
		}
	}
	r.settle()
	tenant.wantMemory()
	tenant.settle()
	crowd.leave()
	for _, path := range []string{"/healthz", "/readyz"} {
		if text := r.exporter.get(t, path); text != "ok\n" {
			t.Errorf("%s says %s", path, text)
		}
	}
	r.idle()
	for _, sink := range r.sinks() {
		gaps := tenant.judge(sink)
		if counted := r.exporter.metricSum(t, "kubecdc_sink_rejected_total", sink.name); gaps > 0 && counted == 0 {
			t.Errorf("sink %s has %d gaps of objects, and nothing is counted", sink.name, gaps)
		}
	}
	r.exporter.stop(t)
}

const tenantNamespace = "tenant"

// mostMemory is far above what the queues of three sinks may take, 64 MiB each, in MiB.
const mostMemory = 512

func (a *tenant) wantMemory() {
	a.t.Helper()
	peak := a.r.exporter.peakMemory(a.t)
	a.t.Logf("the tenant did %d things; the exporter's memory peaked at %s", a.acts, peak)
	var mebibytes int
	if n, err := fmt.Sscanf(peak, "%d MiB", &mebibytes); n == 1 && err == nil && mebibytes > mostMemory {
		a.t.Errorf("the exporter took %s", peak)
	}
}

// tenant is who has rights in one namespace.
type tenant struct {
	t      *testing.T
	r      *rig
	random *rand.Rand
	made   map[string]schema.GroupVersionResource // by name
	acts   int
}

// braces are keys and values that look like the end of what they are in.
func braces() []string {
	return []string{`{"a}]}},`, `}]}}`, `]}}`, `"}],"spec":{`, `{{{{`, `}`, "\\\"}]}", `a}]}},{"metadata":{"name":"x"}}`}
}

func (a *tenant) pick(of []string) string { return of[a.random.IntN(len(of))] }

// name is of any kind where RBAC's objects are meant, which may be called almost anything.
func (a *tenant) name(free bool) string {
	if !free {
		return fmt.Sprintf("t-%d", a.random.IntN(12))
	}
	switch a.random.IntN(5) {
	case 0:
		return fmt.Sprintf("long-%d-%s", a.random.IntN(3), strings.Repeat("x", []int{600, 5000, 40_000}[a.random.IntN(3)]))
	case 1:
		return a.pick([]string{"a\x1b]0;owned\x07", "b\u202egnp.exe", "c\u009b31m", "e\nforged line", "f\tg"})
	case 2:
		return a.pick(braces()[:5])
	}
	return fmt.Sprintf("t-%d", a.random.IntN(12))
}

func (a *tenant) metadata(name string) map[string]any {
	return map[string]any{
		"name": name, "namespace": tenantNamespace,
		"labels":      map[string]any{"team": a.pick([]string{"a.b", "a_b", "a-b", "x", fmt.Sprint("t", a.random.IntN(1000))})},
		"annotations": map[string]any{"note": a.pick(braces()) + a.pick([]string{"\x1b[2J", "\u202e", "é𝄞", ""}), "big": strings.Repeat(a.pick(braces()), a.random.IntN(2000))},
	}
}

// object is a new one of any kind.
func (a *tenant) object() (schema.GroupVersionResource, map[string]any) {
	odd := map[string]any{a.pick(braces()): a.pick(braces()), "managedFields": []any{map[string]any{"manager": a.pick(braces())}}, "id": "x"}
	switch a.random.IntN(4) {
	case 0:
		manifest := pod()
		manifest["metadata"] = a.metadata(a.name(false))
		manifest["spec"].(map[string]any)["volumes"] = []any{map[string]any{
			"name": "v", "csi": map[string]any{"driver": "d.example.com", "volumeAttributes": map[string]any{a.pick(braces()): a.pick(braces())}},
		}}
		return core("pods"), manifest
	case 1:
		manifest := role()
		manifest["metadata"] = a.metadata(a.name(true))
		return rbac("roles"), manifest
	case 2:
		return core("configmaps"), map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": a.metadata(a.name(false)),
			"data": map[string]any{"a": a.pick(braces()), "big": strings.Repeat(a.pick(braces()), a.random.IntN(50_000))},
		}
	}
	manifest := widget()
	manifest["metadata"], manifest[a.pick(braces())], manifest["id"], manifest["specversion"] = a.metadata(a.name(false)), odd, "not/mine", "1.0"
	return widgets(), manifest
}

// act does one thing: it makes an object, changes it, or removes it.
func (a *tenant) act() {
	a.t.Helper()
	resource, manifest := a.object()
	object := &unstructured.Unstructured{Object: manifest}
	client := a.r.client.Resource(resource).Namespace(tenantNamespace)
	_, err := client.Create(a.t.Context(), object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		switch a.random.IntN(3) {
		case 0:
			err = client.Delete(a.t.Context(), object.GetName(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
		default:
			if resource.Resource == "pods" { // of whose spec little may change
				err = a.annotate(resource, object)
			} else {
				_, err = client.Update(a.t.Context(), object, metav1.UpdateOptions{})
			}
		}
	}
	if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsBadRequest(err) {
		a.t.Fatalf("%s %.80q: %v", resource.Resource, object.GetName(), err)
	}
	a.acts++
}

func (a *tenant) annotate(resource schema.GroupVersionResource, object *unstructured.Unstructured) error {
	client := a.r.client.Resource(resource).Namespace(tenantNamespace)
	now, err := client.Get(a.t.Context(), object.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	now.SetAnnotations(object.GetAnnotations())
	now.SetLabels(object.GetLabels())
	_, err = client.Update(a.t.Context(), now, metav1.UpdateOptions{})
	return err
}

func tenantResources() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{core("pods"), core("configmaps"), rbac("roles"), widgets()}
}

// settle returns when each sink has the last change of each resource, and so everything before it.
func (a *tenant) settle() {
	a.t.Helper()
	for _, resource := range tenantResources() {
		manifest := map[string]func() map[string]any{"pods": pod, "configmaps": configMap, "roles": role, "widgets": widget}[resource.Resource]()
		manifest["metadata"] = map[string]any{"name": "the-last", "namespace": tenantNamespace}
		a.r.await(string(a.r.create(resource, tenantNamespace, manifest).GetUID()))
	}
}

// crowd is connections to the exporter's port that say nothing, or read nothing.
type crowd []net.Conn

func (c *crowd) come(address string) {
	for n := range 40 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			continue // the next one may have a place
		}
		if n%4 == 0 {
			io.WriteString(conn, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n") // and it is never read
		}
		*c = append(*c, conn)
	}
	if answer, err := http.Get("http://" + address + "/metrics"); err == nil {
		answer.Body.Close()
	}
}

func (c *crowd) leave() {
	for _, conn := range *c {
		conn.Close()
	}
}
