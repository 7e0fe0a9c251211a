package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TestI4RevokedCredentialsAreOneStory: the exporter's service account is deleted. Its token is refused as soon as the
// API server has forgotten that it was good, and every watch ends in its time. /readyz says why nothing comes, the
// history that is left falls, and the log has one line for all streams; one more when there is a token again. What
// happened meanwhile arrives, without a gap.
func TestI4RevokedCredentialsAreOneStory(t *testing.T) {
	r := newWildcardRig(t, "resources: ['*']\n", "dev")
	r.gateway = newGateway(t, r.cluster)
	give := r.isAccount()
	give()
	r.starts()
	r.arrives(r.touched("before"), "added", "replaced")
	r.eventuallyPage("all is watched", func(p page) bool { return p.Ready && states(p)["watching"] == len(p.Streams) })
	r.begun()
	told := len(r.exporter.log(t))

	if err := r.client.Resource(core("serviceaccounts")).Namespace("default").Delete(t.Context(), account, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, deliveryLimit, "the token is refused", func() bool { return !r.accountIsTaken() })
	r.gateway.endWatches()
	r.eventuallyPage("no stream is read", func(p page) bool { return states(p)["failing"] == len(p.Streams) })
	if status, text, _ := r.exporter.ask("/readyz", patience); status != http.StatusServiceUnavailable || !strings.Contains(text, "the API server refuses the credentials: ") || !strings.Contains(text, "Unauthorized: renew") {
		t.Errorf("/readyz answers %d %q", status, text)
	}
	meanwhile := r.touched("meanwhile")
	r.historyFalls("configmaps", 3*time.Second)
	r.tells(told, `level=WARN msg="the API server refuses the credentials; retrying: renew `)

	told = len(r.exporter.log(t))
	give()
	r.arrives(meanwhile, "added")
	r.arrives(r.touched("after"), "added")
	r.eventuallyPage("all is watched again", func(p page) bool { return p.Ready && states(p)["watching"] == len(p.Streams) })
	r.tells(told, `level=INFO msg="the API server takes the credentials again" for=`)
	r.exporter.stop(t)
	for _, e := range r.file.all(t) {
		if e.op() == "gap" {
			t.Errorf("nothing is missing:\n%s", &e)
		}
	}
	r.once(meanwhile, "added")
}

// tells fails where the log has not exactly one line of the streams since it was so long, which begins so, beside what
// it says once a minute. Discovery, which has another pace, has a line of its own.
func (r *rig) tells(since int, want string) {
	r.t.Helper()
	lines := strings.Split(strings.TrimSpace(r.exporter.log(r.t)[since:]), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool {
		return strings.Contains(line, `msg="API discovery is`) || strings.Contains(line, `msg="streams still fail"`)
	})
	if len(lines) != 1 || !strings.Contains(lines[0], want) {
		r.t.Errorf("the log has %d lines, want one of %q:\n%s", len(lines), want, strings.Join(lines[:min(len(lines), 5)], "\n"))
	}
}

// historyFalls looks at the history that is left of the resource twice, with the span between, and holds that it has
// fallen as time has gone on.
func (r *rig) historyFalls(resource string, span time.Duration) {
	r.t.Helper()
	left := func() float64 {
		return r.exporter.metric(r.t, fmt.Sprintf("kubecdc_history_left_seconds{resource=%q}", resource))
	}
	began := time.Now()
	first := left()
	looked := time.Now()
	eventually(r.t, deliveryLimit, "the span is over", func() bool { return time.Since(looked) >= span })
	last := left()
	const rounding = 0.1
	if fell := first - last; fell < span.Seconds()-rounding || fell > time.Since(began).Seconds()+rounding {
		r.t.Errorf("in %s the history that is left fell from %v to %v s", time.Since(began), first, last)
	}
}

// states are how many streams of the page are in each.
func states(p page) map[string]int {
	n := map[string]int{}
	for _, s := range p.Streams {
		n[s.State]++
	}
	return n
}

// account is the service account that the exporter is.
const account = "exporter"

// isAccount makes the exporter a service account that may do everything. give makes the account, and puts a token of
// it where the plugin of the exporter's kubeconfig finds it.
func (r *rig) isAccount() (give func()) {
	r.t.Helper()
	r.make(rbac("clusterrolebindings"), map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": account},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "namespace": "default", "name": account}},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
	})
	path := r.gateway.kubeconfig(r.t, r.cluster.Kubeconfig(), r.dir)
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		r.t.Fatal(err)
	}
	config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: "cat", Args: []string{r.credential()}, InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}}
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		r.t.Fatal(err)
	}
	r.exporter.args[slices.Index(r.exporter.args, "--kubeconfig")+1] = path
	accounts, meta := r.client.Resource(core("serviceaccounts")).Namespace("default"), map[string]any{"name": account}
	return func() {
		r.t.Helper()
		r.create(core("serviceaccounts"), "default", coreObject("ServiceAccount", account, nil))
		request := map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": meta, "spec": map[string]any{"audiences": []any{}}}
		answer, err := accounts.Create(r.t.Context(), &unstructured.Unstructured{Object: request}, metav1.CreateOptions{}, "token")
		if err != nil {
			r.t.Fatal(err)
		}
		token, _, _ := unstructured.NestedString(answer.Object, "status", "token")
		text := fmt.Sprintf(`{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": %q}}`, token)
		if err := os.WriteFile(r.credential(), []byte(text), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
}

// credential is the file with the token.
func (r *rig) credential() string { return filepath.Join(r.dir, "credential") }

// accountIsTaken asks the API server with the token.
func (r *rig) accountIsTaken() bool {
	r.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", r.exporter.args[slices.Index(r.exporter.args, "--kubeconfig")+1])
	if err != nil {
		r.t.Fatal(err)
	}
	_, err = connect(r.t, config).Resource(core("namespaces")).List(r.t.Context(), metav1.ListOptions{Limit: 1})
	return err == nil
}
