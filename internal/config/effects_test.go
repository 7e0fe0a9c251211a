package config

import (
	"reflect"
	"strings"
	"testing"
)

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

// TestADefaultIsNoEffect, and neither is the order of a set.
func TestADefaultIsNoEffect(t *testing.T) {
	for text, want := range map[string]string{
		"resources: [{resource: pods, before: false}]\nsinks: [{kafka: {brokers: [b:1], tombstones: true}}]":                `kafka.brokers=["b:1"]`,
		"resources: [{resource: pods, ops: [updated, added]}]\nsinks: [{kafka: {brokers: [b:2, b:1]}}]":                     `kafka.brokers=["b:1","b:2"] ops=["added","updated"]`,
		"resources: [{resource: pods, before: true}]\nsinks: [{kafka: {brokers: [b:1], tombstones: false}}]":                `kafka.brokers=["b:1"] kafka.tombstones=false before=true`,
		"resources: [pods]\nsinks: [{kafka: {brokers: [b:1], delivery: transactional, headers: {b: x, a: y}}}]":             `kafka.brokers=["b:1"] kafka.headers={"a":"y","b":"x"} kafka.delivery="transactional"`,
		"resources: [pods]\nsinks: [{format: debezium, kafka: {brokers: [b:1], registry: {url: 'http://r:1'}}}]":            `kafka.brokers=["b:1"] kafka.registry=true kafka.registry.url="http://r:1" format="debezium"`,
		"resources: [{resource: pods, ops: [], drop: []}]\nsinks: [{file: {path: a}, format: cloudevents, updates: whole}]": `file.path="a"`,
	} {
		c, err := Parse("test", []byte("cluster: c\n"+text+"\n"), nil)
		must(t, err)
		var got []string
		for _, e := range append(Effects(&c.Sinks[0]), Effects(&c.Resources[0])...) {
			if e.Value != nil {
				got = append(got, e.Key+"="+string(e.Value))
			}
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
