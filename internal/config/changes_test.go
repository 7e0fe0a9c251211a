package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestAChangedKeySaysWhatConsumersSee, with its value before and now. What is the default is no change, and neither is
// an entry that only one of the configurations has.
func TestAChangedKeySaysWhatConsumersSee(t *testing.T) {
	const base = "cluster: dev\nresources: [{resource: pods}, {resource: secrets}, {resource: '*'}]\n"
	const file = "sinks: [{name: lake, file: {path: a}}]\n"
	kafka := func(keys string) string { return base + "sinks: [{name: bus, kafka: {brokers: [b:1]" + keys + "}}]\n" }
	for _, c := range []struct {
		what, before, now string
		want              []string // how each line begins
	}{
		{"nothing", base + file, base + file, nil},
		{"a default", base + file, base + "hash: field\nsinks: [{name: lake, file: {path: a}, format: cloudevents}]\n", nil},
		{"what no consumer sees", base + file, base + "listen: :1\nsinks: [{name: lake, file: {path: a, keep: 3, rotate: 1Mi}, resync: 1h}]\n", nil},
		{"another sink", base + file, base + "sinks: [{name: van, file: {path: b}, format: debezium}]\n", nil},
		{"the hashes", base + "redactKey: one\n" + file, base + "redactKey: two\nhash: comparable\n" + file,
			[]string{`redactKey was `, `hash was "field" and is "comparable": hashes differ`}},
		{"one resource, and another less", base + file, strings.Replace(base, "pods}, {resource: secrets}", "secrets, before: true, drop: [.data]}", 1) + file,
			[]string{`resource secrets: before was not set and is true: it holds from the second`, `resource secrets: drop was not set and is [".data"]`}},
		{"another place", base + file, base + "sinks: [{name: lake, nats: {url: nats://n}}]\n",
			[]string{`sink lake: nats.url was not set and is "nats://n"`, `sink lake: file.path was "a" and is not set: a gap of reason lost`}},
		{"what a table is made of", kafka(""), kafka(", topic: t, key: '{name}', transactionalId: x, tombstones: false, headers: {a: b}"), []string{
			`sink bus: kafka.topic was "k8s.{cluster}.{resource}" and is "t"`, `sink bus: kafka.key was not set and is "{name}"`,
			`sink bus: kafka.headers was not set and is {"a":"b"}`, `sink bus: kafka.transactionalId was not set and is "x": an exporter`,
			`sink bus: kafka.tombstones was true and is false`,
		}},
		{"what a login is made of", kafka(""), kafka(", sasl: {mechanism: PLAIN, user: u, password: p}, tls: {}"), nil},
	} {
		before, err := Parse("before", []byte(c.before), nil)
		now, nowErr := Parse("now", []byte(c.now), nil)
		if err != nil || nowErr != nil {
			t.Fatal(c.what, err, nowErr)
		}
		recorded, err := before.Recorded()
		if err != nil {
			t.Fatal(err)
		}
		got, differs := now.Since(recorded)
		if differs != (c.what != "nothing" && c.what != "a default") {
			t.Errorf("%s: differs is %t", c.what, differs)
		}
		if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
			t.Errorf("%s: it says\n%s\nwant\n%s", c.what, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
		if text := strings.Join(got, "\n") + string(recorded); strings.Contains(text, "one") && strings.Contains(c.before, "redactKey: one") {
			t.Errorf("%s: a secret is in %s", c.what, text)
		}
	}
	if got, _ := new(Config).Since([]byte("{")); len(got) != 1 || !strings.Contains(got[0], "cannot be compared") {
		t.Errorf("of what cannot be read it says %q", got)
	}
}

// TestEachEffectIsKnown: a tag names one, and each is named.
func TestEachEffectIsKnown(t *testing.T) {
	named := map[string]bool{}
	var visit func(of reflect.Type)
	visit = func(of reflect.Type) {
		for _, f := range fieldsOf(of) {
			if effect := f.Tag.Get("effect"); effect != "" {
				if named[effect] = true; effects()[effect] == "" {
					t.Errorf("key %s has the effect %q, which nobody knows", f.name, effect)
				}
			}
			if inner := f.below(); inner != nil {
				visit(inner)
			}
		}
	}
	visit(reflect.TypeFor[Config]())
	if len(named) != len(effects()) {
		t.Errorf("%d effects are named, of %d", len(named), len(effects()))
	}
}
