package deploy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// What every exporter may ask of the cluster itself.
const (
	identity    = "get namespaces[kube-system]"
	definitions = "list apiextensions.k8s.io/customresourcedefinitions"
	servers     = "list coordination.k8s.io/leases"
)

// TestRolesHaveWhatIsConfiguredAndNothingElse: each line is a scope and one resource of its role.
func TestRolesHaveWhatIsConfiguredAndNothingElse(t *testing.T) {
	for _, c := range []struct {
		name, resources string
		want            []string
	}{
		{"as kubectl names them", "[po, svc, deploy, events, deployments.v1.apps, HPA, csr]", []string{
			": " + identity, ": list watch apps/deployments", ": list watch autoscaling/horizontalpodautoscalers",
			": list watch certificates.k8s.io/certificatesigningrequests", ": list watch events", ": list watch pods", ": list watch services"}},
		{"namespaces", "[{resource: pods, namespaces: [shop, billing]}, {resource: cm, namespaces: [shop]}]", []string{
			": " + identity, "billing: list watch pods", "shop: list watch configmaps", "shop: list watch pods"}},
		{"groups", `["*.cert-manager.io", certificates.v1alpha2.acme.io, events.events.k8s.io]`, []string{
			": " + identity, ": list watch acme.io/certificates", ": list watch cert-manager.io/*", ": list watch events.k8s.io/events"}},
		{"everything", `["*"]`, []string{": " + identity, ": list watch */*"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			objects := render(t, "x", "config: {resources: "+c.resources+"}\nrbac: {wildcard: true}")
			want := append(c.want, ": "+definitions, ": "+servers)
			slices.Sort(want)
			if got := rulesOf(t, objects); !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
	labels := render(t, "x", `config: {resources: [{resource: pods, filter: 'namespaceObject.metadata.labels.team == "red"'}]}`)
	if rules := rulesOf(t, labels); !slices.Contains(rules, ": get list watch namespaces") {
		t.Errorf("with labels of namespaces the rules are %q", rules)
	}
	if objects := render(t, "x", "rbac: {create: false}\n"+twoReplicas); len(rulesOf(t, objects)) > 0 {
		t.Error("roles although none are wanted")
	}
}

// TestTwoReplicasMayHoldTheirLeaseAndNoOther: RBAC cannot say which name may be created.
func TestTwoReplicasMayHoldTheirLeaseAndNoOther(t *testing.T) {
	want := []string{"x: create coordination.k8s.io/leases", "x: get update coordination.k8s.io/leases[kubecdc]"}
	got := slices.DeleteFunc(rulesOf(t, render(t, "x", twoReplicas)), func(rule string) bool { return !strings.Contains(rule, "leases") || rule == ": "+servers })
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestSeveralTasksMayHoldTheLeasesOfTheirNamespace, those of the exporters among them, in no other namespace.
func TestSeveralTasksMayHoldTheLeasesOfTheirNamespace(t *testing.T) {
	want := []string{"x: create coordination.k8s.io/leases", "x: get list update delete coordination.k8s.io/leases"}
	for name, values := range map[string]string{"clusters": fleetPair, "tasks": tasksOfThree} {
		got := slices.DeleteFunc(rulesOf(t, render(t, "x", values)), func(rule string) bool { return !strings.Contains(rule, "leases") || rule == ": "+servers })
		if !slices.Equal(got, want) {
			t.Errorf("%s: got  %q\nwant %q", name, got, want)
		}
	}
}

// TestKubeconfigsInSecretsMayBeReadAndNoOtherSecret.
func TestKubeconfigsInSecretsMayBeReadAndNoOtherSecret(t *testing.T) {
	want := []string{"default: get secrets[us2 us3]"}
	got := slices.DeleteFunc(rulesOf(t, render(t, "x", fleetPair)), func(rule string) bool { return !strings.Contains(rule, "secrets") })
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// rulesOf are the rules of all roles, one resource a line.
func rulesOf(t *testing.T, objects []*unstructured.Unstructured) []string {
	t.Helper()
	var lines []string
	for _, object := range objects {
		if !slices.Contains([]string{"Role", "ClusterRole"}, object.GetKind()) {
			continue
		}
		var role rbacv1.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &role, true); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			lines = append(lines, linesOf(object.GetNamespace(), rule)...)
		}
	}
	slices.Sort(lines)
	return lines
}

func linesOf(namespace string, rule rbacv1.PolicyRule) []string {
	var lines []string
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			if group != "" {
				resource = group + "/" + resource
			}
			line := fmt.Sprintf("%s: %s %s", namespace, strings.Join(rule.Verbs, " "), resource)
			if rule.ResourceNames != nil {
				line += fmt.Sprint(rule.ResourceNames)
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// TestNamesMeanWhatTheyMeanToTheAPIServer: each resource of Kubernetes itself gets the rule that it needs, by each of
// its names, with and without the group.
func TestNamesMeanWhatTheyMeanToTheAPIServer(t *testing.T) {
	lists, err := admin(t).Discovery().ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, list := range lists {
		group, _, grouped := strings.Cut(list.GroupVersion, "/")
		if !grouped {
			group = ""
		}
		// What other tests define is no part of Kubernetes; Events without a group are those of the core.
		if group == "monitoring.coreos.com" || group == "events.k8s.io" {
			continue
		}
		for _, resource := range list.APIResources {
			if slices.Contains(resource.Verbs, "watch") && slices.Contains(resource.Verbs, "list") {
				seen++
				checkNames(t, group, &resource)
			}
		}
	}
	if seen < 40 {
		t.Errorf("the API server serves only %d resources", seen)
	}
}

func checkNames(t *testing.T, group string, resource *metav1.APIResource) {
	t.Helper()
	names := append([]string{resource.Name, resource.SingularName}, resource.ShortNames...)
	if group != "" {
		names = append(names, resource.Name+"."+group, resource.SingularName+"."+group)
	}
	list, err := json.Marshal(names)
	if err != nil {
		t.Fatal(err)
	}
	want := ": list watch " + strings.TrimPrefix(group+"/"+resource.Name, "/")
	got := rulesOf(t, render(t, "x", "config: {resources: "+string(list)+"}"))
	if len(got) != 4 || !slices.Contains(got, want) { // and what every exporter may ask
		t.Errorf("%q: got %q, want %q", names, got, want)
	}
}
