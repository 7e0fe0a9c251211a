package config

import (
	"strings"
	"testing"
)

// TestRegistryIsChecked: each mistake is told with its key and what is allowed.
func TestRegistryIsChecked(t *testing.T) {
	for _, c := range []struct{ sink, want string }{
		{`kafka: {brokers: [a:1], registry: {}}, format: object`, `registry.url (line 2): missing`},
		{`kafka: {brokers: [a:1], registry: {url: "ftp://r"}}, format: object`, `want http://HOST:PORT`},
		{`kafka: {brokers: [a:1], registry: {url: "http://u:p@r"}}, format: object`, `write it as user and password`},
		{`kafka: {brokers: [a:1], registry: {url: "http://r", user: u}}, format: object`, `give both or neither`},
		{`kafka: {brokers: [a:1], registry: {url: "http://r", user: u, password: p, token: t}}, format: object`, `leave one out`},
		{`kafka: {brokers: [a:1], registry: {url: "http://r", tls: {cert: c}}}, format: object`, `cert and key go together`},
		{`kafka: {brokers: [a:1], registry: {url: "http://r", subject: name}}, format: object`, `record`},
		{`kafka: {brokers: [a:1], registry: {url: "http://r", compatibility: some}}, format: object`, `backward`},
		{`kafka: {brokers: [a:1], registry: {url: "http://r", register: maybe}}, format: object`, `true or false`},
		{`kafka: {brokers: [a:1], registry: {url: "http://r", as: protobuf}}, format: object`, `unknown key`},
		{`kafka: {brokers: [a:1], registry: {url: "http://r"}}`, `choose one of`},
		{`kafka: {brokers: [a:1], topic: all, registry: {url: "http://r"}}, format: object`, `{resource}`},
		{`kafka: {brokers: [a:1], topic: "k.{resource}.{namespace}", registry: {url: "http://r"}}, format: object`, `{namespace}`},
		{`kafka: {brokers: [a:1], registry: {url: "http://r"}}, format: cloudevents-binary, updates: patch`, `a value with a schema is a whole object`},
		{`kafka: {brokers: [a:1], topic: "k.{namespace}", registry: {url: "http://r", subject: record}}, format: object`, ``},
		{`kafka: {brokers: [a:1], topic: all, registry: {url: "http://r, https://s/apis", subject: topic-record}}, format: debezium`, ``},
	} {
		loaded, err := Parse("c.yaml", []byte("resources: [pods, services]\nsinks: [{"+c.sink+"}]\n"), testEnv)
		if err == nil {
			err = loaded.Validate()
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "sinks[0]")) {
			t.Errorf("%s: %v, want %q", c.sink, err, c.want)
		}
	}
}
