package badinput

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/test/testcluster"
)

func clientFor(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func admin(t *testing.T) kubernetes.Interface {
	t.Helper()
	return clientFor(t, shared.Get(t).RESTConfig())
}

// newNamespace is a namespace of the test's own.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "badinput-"}}
	made, err := admin(t).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made.Name
}

func createConfigMap(t *testing.T, namespace, name string) {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := admin(t).CoreV1().ConfigMaps(namespace).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// grant lets the limited user list and watch resources of the core group, until the test ends, and get namespace
// kube-system, which is how a cluster is known.
func grant(t *testing.T, resources ...string) {
	t.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "limited-"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: resources, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{"kube-system"}, Verbs: []string{"get"}},
		},
	}
	rbac := admin(t).RbacV1()
	role, err := rbac.ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: testcluster.Limited}},
	}
	if _, err := rbac.ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { revoke(t, role.Name, resources[0]) })
	waitForPermission(t, resources[0], true)
}

func revoke(t *testing.T, role, resource string) {
	ctx := contextOfCleanup(t)
	rbac := admin(t).RbacV1()
	if err := rbac.ClusterRoleBindings().Delete(ctx, role, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if err := rbac.ClusterRoles().Delete(ctx, role, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	waitForPermission(t, resource, false)
}

// waitForPermission waits until the API server's authorizer knows.
func waitForPermission(t *testing.T, resource string, want bool) {
	t.Helper()
	reviews := clientFor(t, shared.Get(t).LimitedRESTConfig()).AuthorizationV1().SelfSubjectAccessReviews()
	eventually(t, "the authorizer knows of "+resource, func() bool {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: resource},
		}}
		answer, err := reviews.Create(contextOfCleanup(t), review, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return answer.Status.Allowed == want
	})
}

func TestUserWhoMayNotEvenAskWhichClusterThisIs(t *testing.T) {
	d := newDesk(t)
	d.exporter(usual("--resources", "configmaps", "--sink", "-", "--context", "limited")...).fails(t, 1,
		"the API server "+d.server+` forbids a request: namespaces "kube-system" is forbidden: User "limited" cannot get resource "namespaces" in API group "" in the namespace "kube-system": bind a role that allows it to this user`)
}

// TestForbiddenResourceLeavesTheOthersRunning: it is said in the log once, on /statusz, and by check; and it starts by
// itself once somebody allows it.
func TestForbiddenResourceLeavesTheOthersRunning(t *testing.T) {
	d := newDesk(t)
	grant(t, "configmaps")
	const forbidden = `ask the server for the version of services: services is forbidden: User "limited" cannot list resource "services" in API group "" at the cluster scope`
	r := d.start(usual("--context", "limited", "--resources", "configmaps,services", "--sink", "file://"+d.path("out.ndjson"), "--log-level", "info")...)
	failed := r.logs("stream failed")
	_, said, _ := strings.Cut(failed, " ")
	if want := fmt.Sprintf(`level=WARN msg="stream failed; retrying" resource=services error=%q`, forbidden); said != want {
		t.Errorf("got  %s\nwant %s", said, want)
	}
	r.logs("msg=\"snapshot complete\" resource=configmaps reason=initial")
	namespace := newNamespace(t)
	createConfigMap(t, namespace, "allowed")
	d.delivers("out.ndjson", "/namespaces/"+namespace+"/configmaps/allowed")
	if s := r.status().Streams; s["services"].LastError != forbidden || s["services"].State != "failing" || s["configmaps"].State != "watching" {
		t.Errorf("/statusz says %+v", s)
	}
	if page := r.get("/readyz"); page != "ok\n" {
		t.Errorf("/readyz says %q", page)
	}
	grant(t, "services")
	r.logs("resource=services reason=initial")
	r.logs("msg=\"stream recovered\" resource=services")
	if n := r.times("stream failed"); n != 1 {
		t.Errorf("said %d times:\n%s", n, r.out)
	}
	r.stopsWell()
}

// delivers waits until the file has the text.
func (d *desk) delivers(file, text string) {
	d.t.Helper()
	eventually(d.t, text+" in "+file, func() bool {
		content, err := os.ReadFile(d.path(file))
		return err == nil && strings.Contains(string(content), text)
	})
}

// TestI9SecretsAreNotPartOfEverything: "*" streams what comes beside a Secret, and not the Secret.
func TestI9SecretsAreNotPartOfEverything(t *testing.T) {
	d := newDesk(t)
	namespace := newNamespace(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "login"}, StringData: map[string]string{"password": password}}
	if _, err := admin(t).CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r := d.start(usual("--resources", "*", "--sink", "file://"+d.path("out.ndjson"), "--log-level", "info")...)
	createConfigMap(t, namespace, "beside")
	d.delivers("out.ndjson", "/namespaces/"+namespace+"/configmaps/beside")
	for name, s := range r.status().Streams {
		if strings.Contains(name, "secrets") {
			t.Errorf("stream %s is %s", name, s.State)
		}
	}
	r.stopsWell()
	content, err := os.ReadFile(d.path("out.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	d.showsNoSecret(string(content))
	for _, trace := range []string{"/secrets/", base64.StdEncoding.EncodeToString([]byte(password))} {
		if strings.Contains(string(content), trace) {
			t.Errorf("the file has %q", trace)
		}
	}
}
