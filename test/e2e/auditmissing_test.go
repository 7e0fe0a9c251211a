package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kubecdc/kubecdc/test/testcluster"
)

// TestTheBeginOfAWriteIsToldWhoseEndIsLost: an API server drops the end of a server-side apply in YAML, and has told
// its begin as that of a write to the object. Of a write in JSON it tells both, by one audit id.
func TestTheBeginOfAWriteIsToldWhoseEndIsLost(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	stages := map[string]string{} // by name of the object and audit id
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var list struct {
			Items []struct {
				AuditID, Stage, Verb string
				ObjectRef            struct{ Resource, Name string }
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&list); err != nil {
			t.Errorf("a batch cannot be read: %v", err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, e := range list.Items {
			if e.Verb != "patch" || e.ObjectRef.Resource != "configmaps" {
				t.Errorf("an event of another request: %+v", e)
			}
			stages[e.ObjectRef.Name+" "+e.AuditID] += e.Stage + " "
		}
	}))
	defer server.Close()
	dir := t.TempDir()
	policy, webhook := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "webhook.yaml")
	for path, text := range map[string]string{
		policy: `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [ResponseStarted]
rules:
- {level: RequestResponse, verbs: [patch], namespaces: [default], resources: [{group: "", resources: [configmaps]}]}
- {level: None}
`,
		webhook: fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: %q}}]
contexts: [{name: a, context: {cluster: a, user: ""}}]
current-context: a
`, server.URL),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cluster := testcluster.New(t, testcluster.Options{APIServerFlags: []string{
		"--audit-policy-file=" + policy, "--audit-webhook-config-file=" + webhook, "--audit-webhook-batch-max-wait=100ms",
		"--audit-webhook-batch-max-size=1", "--audit-webhook-batch-throttle-qps=1000",
	}})
	client, err := kubernetes.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	force := true
	for _, body := range []string{
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yaml}\n", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"json"}}`,
	} {
		name := "json"
		if strings.HasPrefix(body, "api") {
			name = "yaml"
		}
		_, err := client.CoreV1().ConfigMaps("default").Patch(t.Context(), name, types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: "test", Force: &force})
		if err != nil {
			t.Fatal(err)
		}
	}
	told := func(name string) (all string) {
		mu.Lock()
		defer mu.Unlock()
		for of, some := range stages {
			if strings.HasPrefix(of, name) {
				all += some
			}
		}
		return all
	}
	eventually(t, time.Minute, "both stages of the write in JSON are told", func() bool {
		return len(told("json")) == len("RequestReceived ResponseComplete ")
	})
	if got := told("yaml"); got != "RequestReceived " {
		t.Errorf("of the write in YAML it told %q; if it tells the end now, the page of the audit may say so", got)
	}
}
