package source

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubecdc/kubecdc/internal/change"
)

// told is a catalog of resources, each "group/version name[,short] Kind verbs", in the server's order; the version
// named first is the preferred one. down are groups that could not be told.
func told(t *testing.T, down []string, resources ...string) *Catalog {
	t.Helper()
	var groups []apidiscoveryv2.APIGroupDiscovery
	for _, text := range resources {
		var at, names, kind, verbs string
		if n, err := fmt.Sscan(text, &at, &names, &kind, &verbs); n != 4 {
			t.Fatal(err)
		}
		version, err := schema.ParseGroupVersion(strings.TrimPrefix(at, "/"))
		must(t, err)
		name, short, _ := strings.Cut(names, ",")
		r := apidiscoveryv2.APIResourceDiscovery{
			Resource: name, ResponseKind: &metav1.GroupVersionKind{Kind: kind}, Verbs: strings.Split(verbs, ","), ShortNames: strings.Fields(short),
		}
		if kind != "Node" {
			r.Scope = apidiscoveryv2.ScopeNamespace
		}
		groups = addTold(groups, version, apidiscoveryv2.DiscoveryFreshnessCurrent, r)
	}
	for _, group := range down {
		groups = addTold(groups, schema.GroupVersion{Group: group, Version: "v1"}, apidiscoveryv2.DiscoveryFreshnessStale)
	}
	return NewCatalog(groups)
}

// addTold adds resources to the version of the group, each of which may be the last one.
func addTold(
	groups []apidiscoveryv2.APIGroupDiscovery, at schema.GroupVersion, freshness apidiscoveryv2.DiscoveryFreshness,
	resources ...apidiscoveryv2.APIResourceDiscovery,
) []apidiscoveryv2.APIGroupDiscovery {
	if len(groups) == 0 || groups[len(groups)-1].Name != at.Group {
		groups = append(groups, apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: at.Group}})
	}
	group := &groups[len(groups)-1]
	if n := len(group.Versions); n == 0 || group.Versions[n-1].Version != at.Version {
		group.Versions = append(group.Versions, apidiscoveryv2.APIVersionDiscovery{Version: at.Version, Freshness: freshness})
	}
	version := &group.Versions[len(group.Versions)-1]
	version.Resources = append(version.Resources, resources...)
	return groups
}

func usualCatalog(t *testing.T, down ...string) *Catalog {
	return told(t, down,
		"v1 pods,po Pod get,list,watch", "v1 nodes,no Node list,watch", "v1 secrets Secret list,watch", "v1 events,ev Event list,watch",
		"v1 componentstatuses,cs ComponentStatus get,list", "v1 bindings Binding create",
		"apps/v1 deployments,deploy Deployment list,watch", "apps/v1beta1 deployments,deploy Deployment list,watch", "apps/v1beta1 oddities Oddity list,watch",
		"events.k8s.io/v1 events,ev Event list,watch",
	)
}

// spelled are resources as "apps/v1/deployments".
func spelled(resources []change.Resource) string {
	var all []string
	for _, r := range resources {
		all = append(all, r.APIVersion()+"/"+r.Name)
	}
	return strings.Join(all, " ")
}

func TestNamesAreResolvedAsKubectlDoes(t *testing.T) {
	c := usualCatalog(t)
	for name, want := range map[string]string{
		"pods": "v1/pods", "pod": "v1/pods", "po": "v1/pods", "Pod": "v1/pods", "events": "v1/events", "ev": "v1/events",
		"deploy": "apps/v1/deployments", "deployments.apps": "apps/v1/deployments", "deployments.v1beta1.apps": "apps/v1beta1/deployments",
		"oddities": "apps/v1beta1/oddities", "events.events.k8s.io": "events.k8s.io/v1/events",
		"*.apps": "apps/v1/deployments apps/v1beta1/oddities", "*.events.k8s.io": "events.k8s.io/v1/events", "*.none": "",
		// Each resource in its preferred version, and each object once.
		"*": "apps/v1/deployments v1/events v1/nodes apps/v1beta1/oddities v1/pods",
	} {
		got, err := c.Resolve(name)
		if err != nil || spelled(got) != want {
			t.Errorf("%s is %q, %v; want %q", name, spelled(got), err, want)
		}
	}
	if nodes, err := c.Resolve("nodes"); err != nil || !nodes[0].ClusterScoped {
		t.Errorf("nodes are %+v, %v", nodes, err)
	}
	var unknown *UnknownResourceError
	if _, err := c.Resolve("foos"); !errors.As(err, &unknown) {
		t.Errorf("foos: %v", err)
	}
	var unwatchable *UnwatchableError
	if _, err := c.Resolve("cs"); !errors.As(err, &unwatchable) {
		t.Errorf("cs: %v", err)
	}
}

func TestI4I9WhatEverythingLeavesOutIsNamed(t *testing.T) {
	var got []string
	for _, left := range usualCatalog(t).LeftOut("*") {
		got = append(got, left.Name+": "+left.Reason)
	}
	want := "bindings: it cannot be watched, its verbs are create\n" +
		"componentstatuses: it cannot be watched, its verbs are get, list\n" +
		"events.events.k8s.io: its objects are those of events\n" +
		"secrets: secrets are streamed only where they are named"
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	if left := usualCatalog(t).LeftOut("*.apps"); len(left) > 0 {
		t.Errorf("*.apps leaves out %+v", left)
	}
}

// TestI4AGroupThatCannotBeToldIsNotGone, while those that are told and lack a resource are proof.
func TestI4AGroupThatCannotBeToldIsNotGone(t *testing.T) {
	c := usualCatalog(t, "metrics.k8s.io")
	lost := change.Resource{Group: "metrics.k8s.io", Version: "v1", Name: "pods"}
	if c.Serves(lost) || c.Tells("metrics.k8s.io") || c.Incomplete() == nil {
		t.Errorf("serves %t, tells %t, %v", c.Serves(lost), c.Tells("metrics.k8s.io"), c.Incomplete())
	}
	if !c.Tells("apps") || !c.Serves(change.Resource{Group: "apps", Version: "v7", Name: "deployments"}) {
		t.Error("what is told of apps is not believed, in any version")
	}
	var unknown *UnknownResourceError
	if _, err := c.Resolve("pods.metrics.k8s.io"); !errors.As(err, &unknown) || unknown.Cause == nil {
		t.Errorf("pods.metrics.k8s.io: %v, want why it is not known", err)
	}
}
