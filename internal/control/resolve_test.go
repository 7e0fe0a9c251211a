package control

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func exampleStreams() []Stream {
	return []Stream{
		{Name: "shop/secrets", Alias: []string{"secret"}}, {Name: "blog/secrets", Alias: []string{"secret"}},
		{Name: "events"}, {Name: "events.events.k8s.io"},
		{Name: "deployments.apps", Alias: []string{"deploy", "deployment", "deployments.v1.apps", "*.apps"}}, {Name: "replicasets.apps", Alias: []string{"*.apps"}},
		{Name: "certificates.a.io"}, {Name: "certificates.b.io"},
	}
}

func TestNamesStandForStreams(t *testing.T) {
	for names, want := range map[string]string{
		"":                          "blog/secrets certificates.a.io certificates.b.io deployments.apps events events.events.k8s.io replicasets.apps shop/secrets",
		"deployments.apps":          "deployments.apps",
		"Deployments":               "deployments.apps",
		"apps/deployments":          "deployments.apps",
		"deployments.v1.apps":       "deployments.apps",
		"deploy,deployment":         "deployments.apps",
		"*.apps":                    "deployments.apps replicasets.apps",
		"events":                    "events",
		"events.events.k8s.io":      "events.events.k8s.io",
		"secrets":                   "blog/secrets shop/secrets",
		"secret":                    "blog/secrets shop/secrets",
		"shop/secrets,events":       "events shop/secrets",
		"certificates.b.io":         "certificates.b.io",
		"b.io/certificates,secrets": "blog/secrets certificates.b.io shop/secrets",
	} {
		got, err := Resolve(exampleStreams(), fields(names))
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q stands for %q, %v; want %s", names, got, err, want)
		}
	}
}

func fields(names string) []string {
	return strings.FieldsFunc(names, func(r rune) bool { return r == ',' })
}

func TestUnknownNamesAreRefusedWithWhatThereIs(t *testing.T) {
	const all = "blog/secrets, certificates.a.io, certificates.b.io, deployments.apps, events, events.events.k8s.io, replicasets.apps, shop/secrets"
	for names, want := range map[string]string{
		"pods":             `no stream of "pods"; there are: ` + all,
		"pods,events,Foo":  `no stream of "pods", "Foo"; there are: ` + all,
		"other/secrets":    `no stream of "other/secrets"; there are: ` + all,
		"deployments.a.io": `no stream of "deployments.a.io"; there are: ` + all,
		"certificates":     `resource "certificates" is one of certificates.a.io, certificates.b.io: say which`,
	} {
		got, err := Resolve(exampleStreams(), fields(names))
		var refused *RefusedError
		if !errors.As(err, &refused) || err.Error() != want {
			t.Errorf("%q gives %q, %v; want %s", names, got, err, want)
		}
	}
	if _, err := Resolve(nil, []string{"pods"}); err == nil || err.Error() != `no stream of "pods"; there are none` {
		t.Errorf("without a stream: %v", err)
	}
}

func TestSinksByName(t *testing.T) {
	sinks := []string{"out", "bus"}
	for name, want := range map[string][]string{"": sinks, "bus": {"bus"}} {
		if got, err := ResolveSink(sinks, name); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q stands for %q, %v; want %q", name, got, err, want)
		}
	}
	if _, err := ResolveSink(sinks, "lake"); err == nil || err.Error() != `no sink "lake"; there are: bus, out` {
		t.Errorf("unknown sink: %v", err)
	}
}

func TestRegularExpressionsStandForStreams(t *testing.T) {
	for pattern, want := range map[string]string{
		"events":                   "events",
		"deploy":                   "deployments.apps",
		"EVENTS.*":                 "events events.events.k8s.io",
		`certificates\\.[ab]\\.io`: "",
		`certificates\.[ab]\.io`:   "certificates.a.io certificates.b.io",
		"secrets|replica.*":        "shop/secrets blog/secrets replicasets.apps",
		"shop/.*":                  "shop/secrets",
		"event":                    "",
		"certificates":             "",
		")(":                       "",
		"(a{1000}){1000}":          "",
	} {
		got, err := Match(exampleStreams(), pattern)
		var refused *RefusedError
		if strings.Join(got, " ") != want || (want == "") != errors.As(err, &refused) {
			t.Errorf("%q stands for %q, %v; want %s", pattern, got, err, want)
		}
	}
}
