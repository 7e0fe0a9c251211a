package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// account is a ServiceAccount of the chart, with a token that the API server gave for it.
type account struct {
	config     *rest.Config
	kubeconfig string
	name       string // as the API server calls it
}

func accountOf(t *testing.T, objects []*unstructured.Unstructured) account {
	t.Helper()
	made := find(t, objects, "ServiceAccount")
	asked, err := admin(t).CoreV1().ServiceAccounts(made.GetNamespace()).CreateToken(t.Context(), made.GetName(), &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(shared.Get(t).RESTConfig())
	config.BearerToken = asked.Status.Token
	file := clientcmdapi.NewConfig()
	file.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	file.Contexts["test"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	file.CurrentContext = "test"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatal(err)
	}
	return account{config, path, "system:serviceaccount:" + made.GetNamespace() + ":" + made.GetName()}
}

// may asks the API server.
func (a *account) may(t *testing.T, verb, namespace, group, resource, name string) bool {
	t.Helper()
	client, err := kubernetes.NewForConfig(a.config)
	if err != nil {
		t.Fatal(err)
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Namespace: namespace, Group: group, Resource: resource, Name: name},
	}}
	answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.Allowed
}

// installed is the chart in the API server, with a file for a sink, and its configuration on disk.
type installed struct {
	account
	config, out, state string // paths
	objects            []*unstructured.Unstructured
}

func install(t *testing.T, resources string) *installed {
	t.Helper()
	dir := t.TempDir()
	i := &installed{config: filepath.Join(dir, "config.yaml"), out: filepath.Join(dir, "out.ndjson"), state: filepath.Join(dir, "state")}
	objects := render(t, newNamespace(t), "config:\n  resources: "+resources+"\n  sinks: [{name: out, file: {path: "+i.out+"}}]\n  state: {dir: "+i.state+"}\n"+
		"extraVolumes: [{name: out, emptyDir: {}}]\nextraVolumeMounts: [{name: out, mountPath: "+dir+"}]\n")
	newApplier(t).applyAll(objects)
	i.account, i.objects = accountOf(t, objects), objects
	write(t, i.config, configOf(t, objects))
	eventually(t, "the authorizer knows of the role", func() bool { return i.may(t, "get", "", "", "namespaces", "kube-system") })
	return i
}

func create(t *testing.T, namespace, kind, name string) {
	t.Helper()
	about := metav1.ObjectMeta{Name: name}
	var err error
	switch core := admin(t).CoreV1(); kind {
	case "ConfigMap":
		_, err = core.ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: about}, metav1.CreateOptions{})
	case "Secret":
		_, err = core.Secrets(namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: about}, metav1.CreateOptions{})
	default:
		t.Fatalf("no %s can be made", kind)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestExporterRunsWithExactlyTheChartsRole: the configuration is the rendered ConfigMap's, the token the rendered
// ServiceAccount's. What the role is made for arrives, and nothing else can be had with it.
func TestExporterRunsWithExactlyTheChartsRole(t *testing.T) {
	ours, others := newNamespace(t), newNamespace(t)
	i := install(t, "[configmaps, deployments.apps, {resource: secrets, namespaces: ["+ours+"]}]")
	if output, code := command(t, "check", "-f", i.config, "--kubeconfig", i.kubeconfig); code != 0 {
		t.Errorf("check ends with %d:\n%s", code, output)
	}
	x := start(t, "-f", i.config, "--kubeconfig", i.kubeconfig)
	x.logs("msg=watching streams=3 of=3")
	create(t, ours, "ConfigMap", "a")
	create(t, others, "ConfigMap", "b")
	create(t, others, "Secret", "theirs")
	create(t, ours, "Secret", "ours")
	lineWith(t, i.out, `"dev.kubecdc.added"`, "/namespaces/"+ours+"/configmaps/a")
	lineWith(t, i.out, `"dev.kubecdc.added"`, "/namespaces/"+others+"/configmaps/b")
	lineWith(t, i.out, `"dev.kubecdc.added"`, "/namespaces/"+ours+"/secrets/ours")
	x.stop()
	if hasLine(t, i.out, "theirs") {
		t.Error("a Secret of another namespace is in the file")
	}
	for _, c := range []struct {
		verb, namespace, group, resource, name string
		allowed                                bool
	}{
		{"list", "", "", "configmaps", "", true}, {"watch", "", "apps", "deployments", "", true}, {"list", ours, "", "secrets", "", true},
		{"list", "", "", "secrets", "", false}, {"list", others, "", "secrets", "", false}, {"get", ours, "", "secrets", "ours", false},
		{"create", ours, "", "configmaps", "", false}, {"delete", ours, "", "configmaps", "a", false}, {"patch", "", "apps", "deployments", "", false},
		{"list", "", "", "pods", "", false}, {"get", "", "", "namespaces", "default", false}, {"list", "", "", "namespaces", "", false},
		{"get", "", "", "namespaces", "kube-system", true}, {"list", "", "rbac.authorization.k8s.io", "roles", "", false},
		{"list", "kube-system", "coordination.k8s.io", "leases", "", true}, {"list", "", "apiextensions.k8s.io", "customresourcedefinitions", "", true},
	} {
		if got := i.may(t, c.verb, c.namespace, c.group, c.resource, c.name); got != c.allowed {
			t.Errorf("%s %s/%s %s in %q: %t, want %t", c.verb, c.group, c.resource, c.name, c.namespace, got, c.allowed)
		}
	}
}

// TestMissingPermissionIsNamed: the configuration asks for more than the role has. The check says so, the log names it,
// and the rest goes on.
func TestMissingPermissionIsNamed(t *testing.T) {
	i := install(t, "[configmaps]")
	more := strings.Replace(readFile(t, i.config), "- configmaps", "- configmaps\n- services", 1)
	write(t, i.config, more)
	output, code := command(t, "check", "-f", i.config, "--kubeconfig", i.kubeconfig)
	if want := "problem  the API server forbids to list and watch services: bind a role with these verbs to the exporter's user"; code == 0 || !strings.Contains(output, want) {
		t.Errorf("check ends with %d and says\n%swant\n%s", code, output, want)
	}
	x := start(t, "-f", i.config, "--kubeconfig", i.kubeconfig)
	x.logs(`msg="stream failed; retrying"`, "resource=services", `User \"`+i.name+`\" cannot list resource \"services\"`)
	namespace := newNamespace(t)
	create(t, namespace, "ConfigMap", "a")
	lineWith(t, i.out, "/namespaces/"+namespace+"/configmaps/a")
	x.stop()
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
