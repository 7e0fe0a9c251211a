package kafka

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	kafkatest "github.com/kubecdc/kubecdc/test/kafka"
)

// TestAdviceNamesSettingsThatKafkaHas: whoever is told to change a setting of a topic or a broker finds it there. Kafka
// itself is asked.
func TestAdviceNamesSettingsThatKafkaHas(t *testing.T) {
	kafkatest.RequireReal(t)
	have := broker.Get(t).Settings(t)
	for _, name := range []string{
		"isolation.level", "max.request.size", // of Java's consumer and producer
		"message.format.version", // of brokers before 4.0
		"snapshot.end",           // an operation
	} {
		have[name] = true
	}
	files, err := filepath.Glob("*.go")
	below, err2 := filepath.Glob("*/*.go")
	of, err3 := filepath.Glob("../../app/destination/kafka*.go")
	must(t, errors.Join(err, err2, err3))
	files = append(slices.Concat(files, below, of), "../../config/kafka.go")
	literal, setting := regexp.MustCompile("\"(?:[^\"\\\\\n]|\\\\.)*\""), regexp.MustCompile(`(^|[^./\w{])([a-z]+(?:\.[a-z]+)+)`)
	imports, seen := regexp.MustCompile(`(?s)import \(.*?\n\)`), map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		code, err := os.ReadFile(file)
		must(t, err)
		for _, text := range literal.FindAll(imports.ReplaceAll(code, nil), -1) {
			for _, m := range setting.FindAllSubmatch(text, -1) {
				name := string(m[2])
				if strings.HasPrefix(name, "kafka.") || strings.HasSuffix(name, ".md") { // a key of ours, or a page
					continue
				}
				seen[name] = true
				if !have[name] {
					t.Errorf("%s: Kafka has no setting %s: %s", file, name, text)
				}
			}
		}
	}
	if len(seen) < 15 {
		t.Errorf("the texts name %d settings only: %v", len(seen), seen)
	}
}
