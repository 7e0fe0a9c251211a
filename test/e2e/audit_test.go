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
	*rig
	proxy *auditProxy
	users []*auditUser
	round uint64 // of writes: each has others

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
	dir, listen := t.TempDir(), fmt.Sprintf("127.0.0.1:%d", freePort(t))
	ca := authority.New(t, dir, "ca")
	cert, key := ca.Pair("exporter")
	w := &auditWorld{proxy: newAuditProxy(t, ca, listen), truth: map[string]string{}, claims: map[string]string{}, gone: map[string][]string{}}
	policy := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	w.rig = newRigOfWildcard(t, served{
		cluster: testcluster.Options{APIServerFlags: []string{
			"--audit-policy-file=" + policy, "--audit-webhook-config-file=" + w.proxy.config, "--audit-webhook-batch-max-wait=200ms",
			"--audit-webhook-batch-max-size=50", "--audit-webhook-batch-throttle-qps=1000", "--audit-webhook-initial-backoff=500ms",
			"--audit-webhook-batch-buffer-size=100000",
		}},
		configured: fmt.Sprintf("resources: [configmaps, serviceaccounts, deployments.apps]\naudit: {listen: %q, tls: {cert: %q, key: %q}, clientCA: %q}\n", listen, cert, key, ca.File),
		file:       "actors: true", context: "dev",
	})
	w.newUsers()
	return w
}

// newUsers makes 10 service accounts with tokens of their own, and 40 users whom the admin impersonates.
func (w *auditWorld) newUsers() {
	w.t.Helper()
	w.create(core("namespaces"), "", coreObject("Namespace", auditNamespace, nil))
	w.create(rbac("clusterrolebindings"), "", map[string]any{
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
	w.create(core("serviceaccounts"), auditNamespace, coreObject("ServiceAccount", name, nil))
	request := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": map[string]any{"name": name}, "spec": map[string]any{},
	}}
	made, err := w.client.Resource(core("serviceaccounts")).Namespace(auditNamespace).Create(w.t.Context(), request, metav1.CreateOptions{}, "token")
	if err != nil {
		w.t.Fatal(err)
	}
	token, _, _ := unstructured.NestedString(made.Object, "status", "token")
	config.BearerToken = token
	return "system:serviceaccount:" + auditNamespace + ":" + name
}

// TestI4NoWrongUserIsProven lets 50 users change the same objects in every way, while the audit's batches are delayed,
// repeated and lost, and the exporter is killed.
func TestI4NoWrongUserIsProven(t *testing.T) {
	t.Parallel()
	w := newAuditWorld(t)
	w.exporter.start(t)
	writes := number(t, "E2E_AUDIT_WRITES", 400)
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
	w.create(core("configmaps"), auditNamespace, coreObject("ConfigMap", "end", nil))
	w.create(core("serviceaccounts"), auditNamespace, coreObject("ServiceAccount", "end", nil))
	w.create(deployments, auditNamespace, deployment("end", nil))
	eventually(w.t, patience, "all changes are in the file", func() bool {
		text, err := os.ReadFile(w.path())
		return err == nil && strings.Count(string(text), "/"+auditNamespace+"/end/") >= 3
	})
	w.exporter.stop(w.t)
}
