package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/test/authority"
	"github.com/kubecdc/kubecdc/test/testcluster"
)

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: RequestResponse
  verbs: [create, update, patch, delete, deletecollection]
  resources:
  - {group: "", resources: [configmaps, serviceaccounts]}
  - {group: apps, resources: [deployments, deployments/scale, deployments/status]}
- level: None
`

// auditNamespace is where the users write.
const auditNamespace = "audited"

// auditWorld is an API server whose audit goes to an exporter, through a proxy.
type auditWorld struct {
	t        *testing.T
	dir      string
	cluster  *testcluster.Cluster
	admin    dynamic.Interface
	exporter *exporter
	proxy    *auditProxy
	ca       *authority.Authority
	listen   string
	users    []*auditUser
	round    uint64 // of writes: each has others

	mu     sync.Mutex          // guards the following
	truth  map[string]string   // by uid and version: who has made it, where the object does not say
	claims map[string]string   // of writes that were answered with a state: how
	gone   map[string][]string // by uid: whose deletes were confirmed
}

// auditUser is one who writes.
type auditUser struct {
	name   string
	client dynamic.Interface
}

func newAuditWorld(t *testing.T) *auditWorld {
	t.Helper()
	w := &auditWorld{
		t: t, dir: t.ArtifactDir(), listen: fmt.Sprintf("127.0.0.1:%d", freePort(t)),
		truth: map[string]string{}, claims: map[string]string{}, gone: map[string][]string{},
	}
	w.ca = authority.New(t, w.dir, "ca")
	w.proxy = newAuditProxy(t, w.ca, w.listen)
	policy := filepath.Join(w.dir, "policy.yaml")
	w.write(policy, auditPolicy)
	w.cluster = testcluster.New(t, testcluster.Options{APIServerFlags: []string{
		"--audit-policy-file=" + policy, "--audit-webhook-config-file=" + w.proxy.config, "--audit-webhook-batch-max-wait=200ms",
		"--audit-webhook-batch-max-size=50", "--audit-webhook-batch-throttle-qps=1000", "--audit-webhook-initial-backoff=500ms",
		"--audit-webhook-batch-buffer-size=100000",
	}})
	w.admin = connect(t, w.cluster.RESTConfig())
	w.newExporter()
	w.newUsers()
	return w
}

func (w *auditWorld) write(path, text string) {
	w.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *auditWorld) newExporter() {
	w.t.Helper()
	cert, key := w.ca.Pair("exporter")
	config := filepath.Join(w.dir, "config.yaml")
	w.write(config, fmt.Sprintf(`resources: [configmaps, serviceaccounts, deployments.apps]
audit: {listen: %q, tls: {cert: %q, key: %q}, clientCA: %q}
sinks:
- {name: out, file: {path: %q}, actors: true}
`, w.listen, cert, key, w.ca.File, w.out()))
	w.exporter = &exporter{binary: built.Path(w.t), logPath: filepath.Join(w.dir, "exporter.log"), listen: fmt.Sprintf("127.0.0.1:%d", freePort(w.t))}
	w.exporter.args = []string{
		"run", "-f", config, "--kubeconfig", w.cluster.Kubeconfig(), "--state-dir", filepath.Join(w.dir, "state"), "--listen", w.exporter.listen,
	}
}

func (w *auditWorld) out() string { return filepath.Join(w.dir, "out.ndjson") }

// newUsers makes 10 service accounts with tokens of their own, and 40 users whom the admin impersonates.
func (w *auditWorld) newUsers() {
	w.t.Helper()
	w.make(core("namespaces"), "", map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": auditNamespace}})
	bindings := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
	w.make(bindings, "", map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": auditNamespace},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
		"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:serviceaccounts:" + auditNamespace}},
	})
	for i := range 50 {
		config := w.cluster.RESTConfig()
		config.UserAgent = fmt.Sprintf("tool-%d/v1", i%3) // many users share a manager
		name := fmt.Sprintf("user-%d@example.org", i)
		if i < 10 {
			name = w.account(config, fmt.Sprintf("account-%d", i))
		} else {
			config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:masters", "people"}}
		}
		w.users = append(w.users, &auditUser{name, connect(w.t, config)})
	}
}

// account makes a service account, and the configuration one that has its token.
func (w *auditWorld) account(config *rest.Config, name string) (user string) {
	w.t.Helper()
	w.make(core("serviceaccounts"), auditNamespace, map[string]any{
		"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": name},
	})
	request := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": map[string]any{"name": name}, "spec": map[string]any{},
	}}
	made, err := w.admin.Resource(core("serviceaccounts")).Namespace(auditNamespace).Create(w.t.Context(), request, metav1.CreateOptions{}, "token")
	if err != nil {
		w.t.Fatal(err)
	}
	token, _, _ := unstructured.NestedString(made.Object, "status", "token")
	config.BearerToken = token
	return "system:serviceaccount:" + auditNamespace + ":" + name
}

func (w *auditWorld) make(resource schema.GroupVersionResource, namespace string, manifest map[string]any) {
	w.t.Helper()
	var to dynamic.ResourceInterface = w.admin.Resource(resource)
	if namespace != "" {
		to = w.admin.Resource(resource).Namespace(namespace)
	}
	eventually(w.t, patience, resource.Resource+" are made", func() bool {
		_, err := to.Create(w.t.Context(), &unstructured.Unstructured{Object: manifest}, metav1.CreateOptions{})
		return err == nil
	})
}

// TestI4NoWrongUserIsProven lets 50 users change the same objects in every way, while the audit's batches are delayed,
// repeated and lost, and the exporter is killed.
func TestI4NoWrongUserIsProven(t *testing.T) {
	t.Parallel()
	w := newAuditWorld(t)
	w.exporter.start(t)
	writes := number(t, "E2E_AUDIT_WRITES", 600)
	w.run(writes / 3)
	w.exporter.process.Kill()
	w.exporter.start(t)
	w.run(writes / 3)
	w.proxy.mu.Lock()
	w.proxy.bad = true
	w.proxy.mu.Unlock()
	w.run(writes - writes/3*2)
	w.settle()
	w.judge()
}

// settle returns when the audit has sent everything, and the sink has it.
func (w *auditWorld) settle() {
	w.t.Helper()
	eventually(w.t, patience, "the audit has sent everything", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.proxy.mu.Lock()
		defer w.proxy.mu.Unlock()
		for c := range w.claims {
			if !w.proxy.sent[c] && !w.proxy.lost[c] {
				return false
			}
		}
		return true
	})
	// An answer of 200 says that actors are in the file; changes are when what comes after them is.
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	end := map[string]any{"name": "end"}
	w.make(core("configmaps"), auditNamespace, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": end})
	w.make(core("serviceaccounts"), auditNamespace, map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": end})
	w.make(deployments, auditNamespace, deployment("end", nil))
	eventually(w.t, patience, "all changes are in the file", func() bool {
		text, err := os.ReadFile(w.out())
		return err == nil && strings.Count(string(text), "/"+auditNamespace+"/end/") >= 3
	})
	w.exporter.stop(w.t)
}
