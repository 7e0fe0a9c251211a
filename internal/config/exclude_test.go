package config

import (
	"strings"
	"testing"
)

func TestExcludesByFullNameAndGroup(t *testing.T) {
	r := Resource{Name: "*", Exclude: []string{"events", "leases.coordination.k8s.io", "*.metrics.k8s.io"}}
	for name, want := range map[string]bool{
		"events": true, "events.events.k8s.io": false, "leases.coordination.k8s.io": true, "leases": false,
		"pods.metrics.k8s.io": true, "pods": false, "nodes.metrics.k8s.io": true, "x.other.metrics.k8s.io": false,
	} {
		if got := r.Excludes(name); got != want {
			t.Errorf("%s is left out: %t, want %t", name, got, want)
		}
	}
}

func TestExclusionsThatMeanNothingAreRefused(t *testing.T) {
	text := `resources:
  - {resource: "*", exclude: [events, Nope!, "*"], excludeNamespaces: [kube-system, A]}
  - {resource: "*.apps", exclude: ["*.apps"], namespaces: [a], excludeNamespaces: [b]}
  - {resource: pods, exclude: [po]}
  - {resource: "*.batch", required: true}
discovery: {interval: 10ms}
`
	_, err := Parse("c.yaml", []byte(text), func(string) (string, bool) { return "", false })
	if err == nil {
		t.Fatal("it is taken")
	}
	for _, want := range []string{
		`resources[0].exclude[1] (line 2): "Nope!" cannot be a resource`, "resources[0].exclude[2] (line 2): * leaves nothing",
		`resources[0].excludeNamespaces[1] (line 2): "A" cannot be a namespace`, "resources[1].exclude[0] (line 3): *.apps leaves nothing",
		"resources[1].excludeNamespaces (line 3): namespaces are chosen already", "resources[2].exclude (line 4): pods is one resource",
		"resources[3].required (line 5): *.batch may stand for nothing; leave it out",
		`discovery.interval (line 6): want a length of time of at least 1s, have "10ms"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got\n%v\nwant in it %s", err, want)
		}
	}
}
