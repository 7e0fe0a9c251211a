package reference

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/config"
)

// TestCommittedReferenceIsTheGenerators finds a page that was changed by hand, or not made again.
func TestCommittedReferenceIsTheGenerators(t *testing.T) {
	want := Markdown()
	got, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/configuration.md is not what the generator makes (%v): run make docs", err)
	}
}

// TestThePageHasEveryKey in a row, or in the list of those that are as in another section.
func TestThePageHasEveryKey(t *testing.T) {
	p, text := newPage(), string(Markdown())
	for _, key := range p.keys {
		if key.Section {
			continue
		}
		section := p.home(parent(key.Path))
		title := "Top level"
		if section != "" {
			title = "`" + section + "`"
		}
		_, table, _ := strings.Cut(text, "\n## "+title+"\n")
		table, _, _ = strings.Cut(table, "\n## ")
		row := "\n| `" + strings.TrimPrefix(strings.TrimPrefix(key.Path, section), ".") + "` |"
		if !strings.Contains(table, row) && !regexp.MustCompile("`"+last(key.Path)+"`[^|]* as in ").MatchString(table) {
			t.Errorf("the section %q has no row of %s", title, key.Path)
		}
	}
}

// TestKeysAreThoseThatAreRead asks the decoder of each section which keys it takes.
func TestKeysAreThoseThatAreRead(t *testing.T) {
	sections := map[string][]string{}
	for _, key := range Keys() {
		at := parent(key.Path)
		sections[at] = append(sections[at], strings.TrimSuffix(last(key.Path), "[]"))
	}
	if len(sections) < 14 {
		t.Fatalf("%d sections: %v", len(sections), sections)
	}
	for section, names := range sections {
		path := strings.TrimPrefix(section+".nobody", ".")
		text := problem(t, path, "1")
		_, list, found := strings.Cut(text, "allowed: ")
		if slices.Sort(names); !found || list != strings.Join(names, ", ") {
			t.Errorf("section %q has keys\n%s\nand the decoder says\n%s", section, strings.Join(names, ", "), text)
		}
	}
}

// TestAllowedValuesAreThoseThatAreTaken gives each key that has a list another value, and asks what is allowed.
func TestAllowedValuesAreThoseThatAreTaken(t *testing.T) {
	for _, key := range Keys() {
		if key.Type != "string" && key.Type != "strings" || key.Section {
			continue
		}
		value := "nobody"
		if key.Type != "string" {
			value = "[nobody]"
		}
		_, list, _ := strings.Cut(problem(t, key.Path, value), "allowed: ")
		if list != strings.Join(key.Allowed, ", ") {
			t.Errorf("%s: the page allows %q, and the configuration %q", key.Path, key.Allowed, list)
		}
	}
}

// TestDefaultsAreTaken writes each default down: nothing may be wrong with it.
func TestDefaultsAreTaken(t *testing.T) {
	for _, key := range Keys() {
		if key.Default == "" {
			continue
		}
		if text := problem(t, key.Path, fmt.Sprintf("%q", key.Default)); text != "" && key.Path != "sinks[].queue.spool" {
			t.Errorf("%s: its default %s is a problem: %s", key.Path, key.Default, text)
		}
	}
}

// problem is what the configuration says of a value at a path, "" where it takes it. Of other paths it may say more.
func problem(t *testing.T, path, value string) string {
	t.Helper()
	_, err := config.Parse("test", []byte(document(path, value)), os.LookupEnv)
	var problems *config.Problems
	if err != nil && !errors.As(err, &problems) {
		t.Fatal(err)
	}
	if err == nil {
		return ""
	}
	at := strings.ReplaceAll(path, "[]", "[0]")
	for _, p := range problems.List {
		if p.Path == at || p.Path == at+"[0]" {
			return p.Text
		}
	}
	return ""
}

// document has the value at the path and nothing else.
func document(path, value string) string {
	text := value
	for _, name := range slices.Backward(strings.Split(path, ".")) {
		if name, isList := strings.CutSuffix(name, "[]"); isList {
			text = "{" + name + ": [" + text + "]}"
		} else {
			text = "{" + name + ": " + text + "}"
		}
	}
	return text
}
