package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the project's, seen from here.
const root = "../.."

// block is a fenced part of a page, with what the HTML comments above it say:
//
//	<!-- not run: REASON -->  a command that cannot run here
//	<!-- needs TOOL -->       a command that is skipped where there is no such program
//	<!-- before: EVENT -->    what happens before it, one of world.events
//	<!-- exits N -->          its exit code, if it is not 0
//	<!-- until: TEXT -->      the last command goes on for ever; it is interrupted when it has said TEXT
//	<!-- file: NAME -->       it is kept in a file of that name, for the commands after it
//	<!-- golden: PATH -->     it is this message of the encoder's tests
type block struct {
	line     int // of the page
	language string
	text     string
	notes    map[string]string
}

// is says whether the block is in one of the languages.
func (b *block) is(languages ...string) bool { return slices.Contains(languages, b.language) }

// pages are all documents that users read, by their paths from the root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(names) < 6 {
		t.Fatalf("the documents are %q, %v", names, err)
	}
	texts := map[string]string{}
	for _, name := range append(names, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		path, err := filepath.Rel(root, name)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.ToSlash(path)] = string(text)
	}
	return texts
}

var note = regexp.MustCompile(`^<!-- (not run:|needs|before:|exits|until:|file:|golden:) (.+) -->$`)

// blocks are the fenced parts of a page.
func blocks(t *testing.T, page, text string) []block {
	t.Helper()
	var all []block
	notes := map[string]string{}
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if m := note.FindStringSubmatch(line); m != nil {
			notes[strings.TrimSuffix(m[1], ":")] = m[2]
			continue
		}
		if !strings.HasPrefix(line, "```") {
			if len(notes) > 0 {
				t.Errorf("%s:%d: a note for a block, and no block behind it", page, i)
			}
			notes = map[string]string{}
			continue
		}
		end := slices.Index(lines[i+1:], "```")
		if end < 0 {
			t.Fatalf("%s:%d: a block without an end", page, i+1)
		}
		all = append(all, block{line: i + 1, language: line[3:], text: strings.Join(lines[i+1:i+1+end], "\n"), notes: notes})
		notes = map[string]string{}
		i += end + 1
	}
	return all
}

// command is one of a block, and what the page says that it prints.
type command struct {
	text   string
	output []string
}

// commands are those of a block: after "$ " in console, with all that a quote or a backslash carries on; all of it in
// sh.
func (b *block) commands() []command {
	if b.language != "console" {
		return []command{{text: b.text}}
	}
	var all []command
	open := false
	for line := range strings.SplitSeq(b.text, "\n") {
		switch text, isCommand := strings.CutPrefix(line, "$ "); {
		case open:
			all[len(all)-1].text += "\n" + line
		case isCommand:
			all = append(all, command{text: text})
		case len(all) > 0:
			all[len(all)-1].output = append(all[len(all)-1].output, line)
			continue
		default:
			continue
		}
		last := all[len(all)-1].text
		open = strings.Count(last, "'")%2 == 1 || strings.HasSuffix(last, `\`)
	}
	return all
}

var capitals = regexp.MustCompile(`^[A-Z]+( +[A-Z]+)*$`)

// headings are the lines of a command's output that name the columns of a table.
func (c *command) headings() []string {
	var found []string
	for _, line := range c.output {
		if line = strings.TrimSpace(line); capitals.MatchString(line) {
			found = append(found, strings.Join(strings.Fields(line), " "))
		}
	}
	return found
}
