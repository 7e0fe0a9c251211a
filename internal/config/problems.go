package config

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/kubecdc/kubecdc/internal/config/usage"
)

// readTree reads the one YAML document that data has to be, or says what keeps it from being one.
func readTree(data []byte) (*yaml.Node, *Problem) {
	if line := firstLine(data, func(line []byte) bool { return !utf8.Valid(line) }); line != 0 {
		return nil, &Problem{Line: line, Text: "not UTF-8; save the file as UTF-8"}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var root, more yaml.Node
	if err := decoder.Decode(&root); err != nil && err != io.EOF {
		return nil, syntaxProblem(data, err)
	}
	if len(root.Content) == 0 || root.Content[0].ShortTag() == "!!null" {
		return nil, &Problem{Text: "empty; want at least resources and sinks"}
	}
	switch err := decoder.Decode(&more); {
	case err == nil:
		return nil, &Problem{Line: more.Content[0].Line, Text: "a second document; a configuration is one document, without ---"}
	case err != io.EOF:
		return nil, syntaxProblem(data, err)
	}
	return root.Content[0], nil
}

// firstLine is the number of the first line that is so, 0 where there is none.
func firstLine(data []byte, is func(line []byte) bool) int {
	return slices.IndexFunc(bytes.Split(data, []byte("\n")), is) + 1
}

// syntaxProblem puts the YAML library's error into our form. A tab is looked for first: the library calls it a
// character that cannot start a token, and it cannot be seen.
func syntaxProblem(data []byte, err error) *Problem {
	isTabbed := func(line []byte) bool {
		content := bytes.TrimLeft(line, " \t")
		return len(content) > 0 && bytes.ContainsRune(line[:len(line)-len(content)], '\t')
	}
	if line := firstLine(data, isTabbed); line != 0 {
		return &Problem{Line: line, Text: "indented with a tab; YAML wants spaces"}
	}
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if _, err := fmt.Sscanf(text, "line %d:", &line); err != nil {
		line = 0 // not all errors have one
	}
	text = strings.TrimPrefix(text, fmt.Sprintf("line %d: ", line))
	if isGrammatical(text) {
		line++
	}
	return &Problem{Line: line, Text: "not YAML: " + text + "; look at the indentation, brackets and quotes of this line and of the one before"}
}

// isGrammatical knows the errors of the YAML library whose lines count from 0: those of its parser. Those of its
// scanner, which has other words, count from 1.
func isGrammatical(text string) bool {
	expected, found := strings.CutPrefix(text, "did not find expected ")
	begins := func(what string) bool { return strings.HasPrefix(expected, what) }
	return found && slices.ContainsFunc([]string{"<", "node content", "'-' indicator", "key", "',' or"}, begins)
}

// Problem is one thing that is wrong.
type Problem struct {
	Path string // in the file, "sinks[1].nats.stream", or a flag, "--sink nats://h"; "" is the file as a whole
	Line int    // in the file; 0 where it is not known
	Text string // what is wrong, and what would be right
}

// String is the problem on one line.
func (p Problem) String() string {
	switch {
	case p.Path == "" && p.Line == 0:
		return p.Text
	case p.Path == "":
		return fmt.Sprintf("line %d: %s", p.Line, p.Text)
	case p.Line == 0:
		return p.Path + ": " + p.Text
	}
	return fmt.Sprintf("%s (line %d): %s", p.Path, p.Line, p.Text)
}

// Problems is the error that names everything wrong at once. It means that a person has to change the file or the
// command line, and that trying again is no use.
type Problems struct {
	Source string    // "configuration config.yaml", "command line"
	List   []Problem // never empty in an error; in the file's order
}

// Error is one line for one problem, and a heading with a line each for more.
func (p *Problems) Error() string {
	if len(p.List) == 1 {
		return p.Source + ": " + p.List[0].String()
	}
	return usage.Listed(p.Source, p.List)
}
