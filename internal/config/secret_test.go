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
