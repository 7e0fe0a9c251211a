package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"k8s.io/klog/v2"

	"github.com/kubecdc/kubecdc/internal/config"
)

// TestI6NoNameMakesALongLine: names of some kinds are bounded by etcd alone, wherever in a line they are told.
func TestI6NoNameMakesALongLine(t *testing.T) {
	t.Cleanup(klog.ClearLogger)
	name := strings.Repeat("n", 300_000)
	for _, format := range []string{"text", "json"} {
		var log bytes.Buffer
		logger := NewLogger(&log, config.Log{Level: "info", Format: format})
		for what, tell := range map[string]func(){
			"text":    func() { logger.Warn("told", "object", name) },
			"error":   func() { logger.Warn("told", "error", fmt.Errorf("write it: %w", errors.New(name))) },
			"list":    func() { logger.Warn("told", "objects", []string{"a", name}) },
			"group":   func() { logger.Warn("told", slog.Group("of", "object", name)) },
			"logger":  func() { logger.With("object", name).Warn("told") },
			"message": func() { klog.Warningf("told: %s", name) },
		} {
			log.Reset()
			tell()
			line := log.String()
			if len(line) > 10_000 || !strings.Contains(line, "told") || !strings.Contains(line, "nnn...%sha256-") {
				t.Errorf("%s, %s: a line of %d bytes begins %.100s", format, what, len(line), line)
			}
		}
		log.Reset()
		logger.Warn("told", "objects", []string{"a", "b"}, "level", slog.LevelWarn, "error", errors.New("no"), "n", 1)
		want := map[string]string{
			"text": `level=WARN msg=told objects="[a b]" level=WARN error=no n=1`,
			"json": `"level":"WARN","msg":"told","objects":["a","b"],"level":"WARN","error":"no","n":1}`,
		}
		if !strings.HasSuffix(strings.TrimSpace(log.String()), want[format]) {
			t.Errorf("%s: what is short is told as %s", format, &log)
		}
	}
}
