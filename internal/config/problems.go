package config

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hbollon/go-edlib"
	"go.yaml.in/yaml/v3"

	"github.com/kubecdc/kubecdc/internal/config/usage"
)

// readTree reads the one YAML document that data has to be, or says what keeps it from being one.
func readTree(data []byte) (*yaml.Node, *Problem) {
	if !utf8.Valid(data) {
		return nil, &Problem{Text: "not UTF-8; save the file as UTF-8"}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var root, more yaml.Node
	if err := decoder.Decode(&root); err != nil && err != io.EOF {
		return nil, syntaxProblem(err)
	}
	if len(root.Content) == 0 || root.Content[0].ShortTag() == "!!null" {
		return nil, &Problem{Text: "empty; want at least resources and sinks"}
	}
	switch err := decoder.Decode(&more); {
	case err == nil:
		return nil, &Problem{Line: more.Content[0].Line, Text: "a second document; a configuration is one document, without ---"}
	case err != io.EOF:
		return nil, syntaxProblem(err)
	}
	return root.Content[0], nil
}

// syntaxProblem puts the YAML library's error into our form. The line is the library's, which may be the one before.
func syntaxProblem(err error) *Problem {
	text, line := strings.TrimPrefix(err.Error(), "yaml: "), 0
	if _, err := fmt.Sscanf(text, "line %d:", &line); err != nil {
		line = 0 // not all errors have one
	}
	text = strings.TrimPrefix(text, fmt.Sprintf("line %d: ", line))
	return &Problem{Line: line, Text: "not YAML: " + text + "; look for a tab, and at the indentation, brackets and quotes around it"}
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

// under is the path of a key, quoted where it is no plain word.
func under(path, key string) string {
	if !consistsOf(key, lower+upper+digits+"-_") {
		key = fmt.Sprintf("%q", shorten(key))
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func item(path string, index int) string { return fmt.Sprintf("%s[%d]", path, index) }

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
)

// consistsOf says whether text is not empty and holds nothing but the allowed characters.
func consistsOf(text, allowed string) bool {
	return text != "" && strings.Trim(text, allowed) == ""
}

// isBlank says whether the character could hide: in a name it is a mistake, mostly a newline at the end of a file.
func isBlank(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// Closest returns the one of the names that key was probably meant to be, "" where none is near.
func Closest(key string, names []string) string {
	best, near := "", min(3, 1+(len(key)+1)/3) // of a short name, half would be another one
	for _, name := range names {
		if len(key) > 64 || len(name) > 64 { // no key is that long, which bounds the work
			continue
		}
		d := edlib.OSADamerauLevenshteinDistance(strings.ToLower(key), strings.ToLower(name))
		if d < near && d < len(name) {
			best, near = name, d
		}
	}
	return best
}

// join is the names as a sentence has them, in alphabetical order.
func join(names []string) string {
	return strings.Join(slices.Sorted(slices.Values(names)), ", ")
}

// LineFormats are those that can be told apart in a file, which has values alone.
func LineFormats() []string { return []string{"cloudevents", "debezium"} }

// What is cut out of each object unless it is kept.
const (
	KeepManagedFields = "managedFields" // metadata.managedFields
	KeepLastApplied   = "lastApplied"   // the annotation of kubectl apply
)

// IgnoreHeartbeats is a name that Resource.Ignore may have beside paths. It stands for what changes although nothing
// happens.
const IgnoreHeartbeats = "heartbeats"

// Some of the values that tags allow.
const (
	formatDebezium = "debezium" // has keys of its own
	formatObject   = "object"   // has deletes of which the key alone says whose they are

	updatesWhole = "whole" // an update says the object
	updatesPatch = "patch" // what changed since a version that the sink has, where that is certain

	oauthBearer = "OAUTHBEARER" // logs in without a user and a password
	mskIAM      = "AWS_MSK_IAM" // likewise

	fullBlock = "block" // reading waits for the sink
	fullSpool = "spool" // what a full queue does not hold goes to disk, up to Queue.Spool
	// it holds the newest record of each object alone, full or not, and those go to disk, up to Queue.Spool
	fullCoalesce = "coalesce"

	oversizeTrim = "trim" // it is cut until it fits; where it does not, it is kept aside

	subjectTopic  = "topic"  // a subject for each topic
	subjectRecord = "record" // the same subject in all topics
)

// placeholders are the names that a template of topics or subjects may hold in braces, beside label:KEY
// and namespaceLabel:KEY.
func placeholders() []string {
	return []string{"cluster", "group", "resource", "namespace", "name", "version", "kind"}
}

// schemes are the kinds of NATS URL: in the clear until the server asks for TLS, TLS from the client's side, and the
// same over websockets.
func schemes() []string { return []string{"nats", "tls", "ws", "wss"} }

// isString says whether the scalar is one. What YAML 1.1 took for a boolean is none: a reader may still mean that.
func isString(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		return false
	}
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) != 0 {
		return true
	}
	switch n.Value {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return false
	}
	return true
}

// describeNode shows the node as it was written, before any variable in it was replaced, so that no secret comes out.
func describeNode(n *yaml.Node) string {
	switch {
	case n == nil:
		return "nothing"
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isString(n):
		return strconv.Quote(shorten(n.Value))
	}
	return shorten(n.Value)
}

func shorten(text string) string {
	const enough = 60
	runes := []rune(text)
	if len(runes) <= enough {
		return text
	}
	return string(runes[:enough]) + "..."
}
