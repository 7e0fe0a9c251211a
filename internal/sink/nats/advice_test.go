package nats

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

// TestAdviceNamesSettingsThatNATSHas: whoever is told to change a setting of a stream or a server finds it there.
func TestAdviceNamesSettingsThatNATSHas(t *testing.T) {
	have := map[string]bool{}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[jetstream.StreamConfig]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		have[name] = true
	}
	conf := filepath.Join(t.TempDir(), "server.conf")
	noError(t, os.WriteFile(conf, []byte("max_payload: 2000000"), 0o600))
	options, err := server.ProcessConfigFile(conf)
	if err != nil || options.MaxPayload != 2_000_000 {
		t.Fatal(options, err)
	}
	have["max_payload"] = true
	files, err := filepath.Glob("*.go")
	below, err2 := filepath.Glob("*/*.go")
	noError(t, errors.Join(err, err2))
	literal, setting := regexp.MustCompile("\"(?:[^\"\\\\\n]|\\\\.)* (?:[^\"\\\\\n]|\\\\.)*\""), regexp.MustCompile(`(^|[^./\w$])([a-z]+(?:_[a-z]+)+)`)
	seen := map[string]bool{}
	for _, file := range append(files, below...) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		code, err := os.ReadFile(file)
		noError(t, err)
		for _, text := range literal.FindAll(code, -1) {
			for _, m := range setting.FindAllSubmatch(text, -1) {
				name := string(m[2])
				seen[name] = true
				if !have[name] {
					t.Errorf("%s: NATS has no setting %s: %s", file, name, text)
				}
			}
		}
	}
	if len(seen) < 5 {
		t.Errorf("the texts name %d settings only: %v", len(seen), seen)
	}
}
