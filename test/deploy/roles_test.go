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
