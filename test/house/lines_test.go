package house

import (
	"bufio"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxColumns is the longest line of prose; a tab counts four.
const maxColumns = 120

// TestProseFits holds documents, configurations and comments to lines that a screen shows without wrapping.
// Markdown's tables, links that cannot be broken, generated files and test data are not prose.
func TestProseFits(t *testing.T) {
	prose := map[string]func(string, []byte) []int{".md": longMarkdown, ".yaml": longHashes, ".tpl": longHashes, ".go": longComments}
	found := map[string]int{}
	for _, path := range written(t) {
		long, known := prose[filepath.Ext(path)]
		if base := filepath.Base(path); base == "Makefile" || base == "Dockerfile" {
			long, known = longHashes, true
		}
		if !known {
			continue
		}
		found[filepath.Ext(path)]++
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(firstLine(text), []byte("generated")) || bytes.Contains(firstLine(text), []byte("Made from")) {
			continue
		}
		for _, line := range long(path, text) {
			t.Errorf("%s:%d: a line of more than %d columns: break it", path, line, maxColumns)
		}
	}
	if found[".md"] < 10 || found[".yaml"] < 5 || found[".go"] < 100 {
		t.Errorf("too few files were found: %v", found)
	}
}

// written are the files of the project that people write.
func written(t *testing.T) []string {
	t.Helper()
	root := filepath.Join("..", "..")
	var all []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case !entry.IsDir():
			all = append(all, path)
		case path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin" || name == "dist" || name == "target"):
			return filepath.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func firstLine(text []byte) []byte {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return line
}

func columns(line string) int {
	return utf8.RuneCountInString(line) + 3*strings.Count(line, "\t")
}

// isLong says whether a line is too long and has a place to break it.
func isLong(line string) bool {
	return columns(line) > maxColumns && (len(strings.Fields(line)) > 2 || strings.HasPrefix(line, "{"))
}

// longLines are the numbers of the lines that are too long, where is says that they are prose.
func longLines(text []byte, is func(line string) bool) (long []int) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for number := 1; lines.Scan(); number++ {
		if is(lines.Text()) && isLong(lines.Text()) {
			long = append(long, number)
		}
	}
	return long
}

// longMarkdown leaves out tables, whose rows cannot be broken.
func longMarkdown(_ string, text []byte) []int {
	return longLines(text, func(line string) bool {
		return !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "<!--")
	})
}

// longComments takes lines of Go that are nothing but a comment.
func longComments(_ string, text []byte) []int {
	return longLines(text, func(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "// ") })
}

// longHashes takes lines with a comment in YAML, templates and makefiles.
func longHashes(_ string, text []byte) []int {
	return longLines(text, func(line string) bool {
		return strings.HasPrefix(strings.TrimSpace(line), "#") || strings.Contains(line, " # ") || strings.Contains(line, " ## ")
	})
}

// TestFirstPagesStayShort: a stranger reads README.md, a contributor DESIGN.md, each in one go. Details have pages in
// docs, and a package's decisions its doc.go.
func TestFirstPagesStayShort(t *testing.T) {
	for name, most := range map[string]int{"README.md": 620, "DESIGN.md": 2300} {
		text, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		if words := len(strings.Fields(string(text))); words > most {
			t.Errorf("%s has %d words, want at most %d: move details to docs or to a package's doc.go", name, words, most)
		}
	}
}
