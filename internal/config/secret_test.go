package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// I9: no way of printing shows a secret.
func TestSecretStays(t *testing.T) {
	const value = "hunter2"
	n := NATS{NATSLogin: NATSLogin{Password: value, Token: value}}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%t", "%10s"} {
		fmt.Fprintf(&out, verb+" "+verb+" "+verb+"\n", n, n.Password, []Secret{n.Token})
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("text", "password", n.Password, "nats", n)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("json", "password", n.Password, "nats", n)
	for _, encode := range []func(any) ([]byte, error){json.Marshal, yaml.Marshal} {
		text, err := encode(map[string]any{"secret": n.Token, "nats": n})
		must(t, err)
		out.Write(text)
	}
	if strings.Contains(out.String(), value) || strings.Contains(out.String(), fmt.Sprintf("%x", value)) {
		t.Errorf("a secret is in\n%s", out.String())
	}
	if !strings.Contains(out.String(), masked) {
		t.Errorf("no %s in\n%s", masked, out.String())
	}
	if n.Password.Reveal() != value || n.Password.String() != masked {
		t.Error("only Reveal tells")
	}
}

// I9: no message about a wrong configuration shows a secret.
func TestProblemsKeepSecrets(t *testing.T) {
	for _, nats := range []string{
		"{url: 'nats://u:hunter2@h:port'}",
		"{url: 'nats://u:hun/hunter2@h'}",
		"{url: 'nats://u:hunter2#@h'}",
		"{url: 'nats://u:%zhunter2@h'}",
		"{url: 'http://u:hunter2@h'}",
		"{url: 'u:hunter2@h'}",
		"{url: 'nats://u:${NATS_PASSWORD}@h:port'}",
		"{url: 'nats://u:hunter2@h', user: u}",
		"{url: 'nats://u:hunter2@h,nats://u:p@h'}",
		"{password: !!int hunter2}",
		"{password: !!float hunter2}",
		"{password: !!map hunter2}",
		"{password: [hunter2]}",
		"{password: 'hunter2${'}",
		"{password: '${hunter2-}'}",
		"{password: {hunter2: 1}}",
		"{password: hunter2}",
	} {
		_, err := Parse("c", []byte("sinks: [{nats: "+nats+"}]"), testEnv)
		if err == nil {
			t.Errorf("%s: no error", nats)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: a secret is in\n%v", nats, err)
		}
	}
	for _, sink := range []string{
		"nats://u:hunter2@h:port", "nats://u:hunter2?@h", "nats://u:hunter2?x@h:1", "kafka://u:hunter2@h", "u:hunter2@h",
		"nats://u:hunter2@h,nats://u:p@h", "nats://u:p?%zzhunter2@h",
	} {
		err := Overlay(new(Config), Flags{Sinks: []string{sink}})
		if err == nil {
			t.Errorf("%s: no error", sink)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: a secret is in\n%v", sink, err)
		}
	}
}
