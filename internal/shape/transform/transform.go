package transform

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Step is one part of a path: a field's name, one element of a list, or whatever there is.
type Step struct {
	Field   string // "" in the other two
	Any     bool   // [*] and .*
	element int
}

// Steps are the parts of one path.
func Steps(path string) ([]Step, error) {
	steps, err := parsePath(path)
	if err != nil {
		return nil, fmt.Errorf("path %q: %w", path, err)
	}
	return steps, nil
}

// envKey is what lists of environment variables are called.
const envKey = "env"

// Transform is a set of rules that is ready to be applied. It is safe for concurrent use.
type Transform struct {
	paths  *Node
	env    []pattern
	key    []byte
	binds  bool // hashes are of fields
	again  bool // hashes of the key stay as they are
	prunes bool // a field of which nothing is left is left out
}

// Again is the transform for objects that went through one with the same key before: what is a hash stays that hash.
func (t *Transform) Again() *Transform {
	again := *t
	again.again = true
	return &again
}

// Pruned is the transform that also leaves out each field in which all is left out, so that it makes no difference who
// brings or takes the map.
func (t *Transform) Pruned() *Transform {
	pruned := *t
	pruned.prunes = true
	return &pruned
}

// New parses the rules. An error names the path or pattern that is wrong.
func New(rules Rules, key Key) (*Transform, error) {
	if len(key.Secret) == 0 {
		return nil, errors.New("make a transform: no key for hashes")
	}
	t := &Transform{key: key.bytes(), binds: rules.hashes() && !key.Comparable}
	var err error
	if t.paths, err = rules.Paths(); err != nil {
		return nil, err
	}
	for _, text := range rules.Env {
		p, err := parsePattern(text)
		if err != nil {
			return nil, err
		}
		t.env = append(t.env, p)
	}
	return t, nil
}

// Watched is the key that a proof has to watch for a Worker; "" is none.
func (t *Transform) Watched() string {
	if len(t.env) == 0 {
		return ""
	}
	return envKey
}

// Rule is a set of kinds of rules.
type Rule uint8

const (
	Drop Rule = 1 << iota
	Keep
	Redact
	inside // the value is the text of an object
	fields // the value names fields, and values
)

// Node is a place in the tree of all paths. Those below it are nil where no path leads there.
type Node struct {
	Fields   map[string]*Node
	Elements map[int]*Node
	Any      *Node
	Ends     Rule // of the paths that end here
	Leads    Rule // of the paths that go on
}

// Identity is what an object always keeps.
func Identity() []string {
	return []string{".apiVersion", ".kind", ".metadata.name", ".metadata.namespace", ".metadata.uid", ".metadata.resourceVersion"}
}

// Paths is the tree of all paths of the rules.
func (r Rules) Paths() (*Node, error) {
	root := &Node{}
	kept := r.Keep
	if len(kept) > 0 {
		kept = append(Identity(), kept...)
	}
	var applied, managed []string
	if r.Applied {
		applied = []string{LastApplied}
	}
	if r.Managed {
		managed = []string{".metadata.managedFields[*].fieldsV1"}
	}
	for _, some := range []struct {
		is    Rule
		name  string
		paths []string
	}{{inside, "", applied}, {fields, "", managed}, {Drop, "drop", r.Drop}, {Keep, "keep", kept}, {Redact, "redact", r.Redact}} {
		for _, path := range some.paths {
			steps, err := Steps(path)
			if err != nil {
				return nil, fmt.Errorf("%s %w", some.name, err)
			}
			at := root
			for _, step := range steps {
				at.Leads |= some.is
				at = at.child(step)
			}
			at.Ends |= some.is
		}
	}
	return root, nil
}

// child is where a step leads.
func (n *Node) child(s Step) *Node {
	if s.Any {
		n.Any = cmp.Or(n.Any, &Node{})
		return n.Any
	}
	if n.Fields == nil {
		n.Fields, n.Elements = map[string]*Node{}, map[int]*Node{}
	}
	if s.Field == "" {
		n.Elements[s.element] = cmp.Or(n.Elements[s.element], &Node{})
		return n.Elements[s.element]
	}
	n.Fields[s.Field] = cmp.Or(n.Fields[s.Field], &Node{})
	return n.Fields[s.Field]
}

// parsePath takes a path apart.
func parsePath(text string) (parts []Step, err error) {
	rest := text
	if inner, braced := strings.CutPrefix(text, "{"); braced {
		var closed bool
		if rest, closed = strings.CutSuffix(inner, "}"); !closed {
			return nil, fmt.Errorf("a { without its }")
		}
	}
	rest = strings.TrimPrefix(rest, "$")
	if rest == "" || rest == "." {
		return nil, fmt.Errorf("it names the whole object; want a field, such as .spec.replicas")
	}
	for rest != "" {
		var p Step
		if p, rest, err = parsePart(rest); err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// parsePart takes the path's next part.
func parsePart(text string) (p Step, rest string, err error) {
	if text[0] == '[' {
		return parseBracket(text[1:])
	}
	text = strings.TrimPrefix(text, ".")
	end := strings.IndexAny(text, ".[")
	if end < 0 {
		end = len(text)
	}
	name, rest := text[:end], text[end:]
	switch {
	case name == "":
		return p, "", fmt.Errorf("a part is empty; .. is not supported")
	case name == "*":
		return Step{Any: true}, rest, nil
	case strings.ContainsAny(name, " ]{}()'\"?@"):
		return p, "", fmt.Errorf("%q is not a field; write a name with special characters as ['name']", name)
	}
	return Step{Field: name}, rest, nil
}

// parseBracket takes what stands after a [.
func parseBracket(text string) (p Step, rest string, err error) {
	if quote := text[:min(1, len(text))]; quote == "'" || quote == `"` {
		name, rest, closed := strings.Cut(text[1:], quote+"]")
		if !closed || name == "" {
			return p, "", fmt.Errorf("a [%s without its %s], or nothing between", quote, quote)
		}
		return Step{Field: name}, rest, nil
	}
	inner, rest, closed := strings.Cut(text, "]")
	if !closed {
		return p, "", fmt.Errorf("a [ without its ]")
	}
	if inner == "*" {
		return Step{Any: true}, rest, nil
	}
	index, err := strconv.Atoi(inner)
	if err != nil || index < 0 {
		return p, "", fmt.Errorf("[%s] is not supported; allowed: [*], an index such as [0], a field such as ['a.b/c']", inner)
	}
	return Step{element: index}, rest, nil
}

// Key makes hashes.
type Key struct {
	Secret []byte // whoever has it can test guesses of what is behind a hash
	// Comparable hashes are of the value alone: equal ones stand for equal values, wherever they are. Others are of the
	// cluster, the object and the field, too: whoever may write one object learns nothing from its hashes of another.
	Comparable bool
	Cluster    string
}

// Form tells the keys apart that hashes of the rules are made with. Whoever reads it has the key.
func (k Key) Form(all ...Rules) []byte {
	if !slices.ContainsFunc(all, Rules.hashes) {
		return k.Secret
	}
	return k.bytes()
}

func (k Key) bytes() []byte {
	if k.Comparable {
		return k.Secret
	}
	mac := hmac.New(sha256.New, k.Secret)
	mac.Write([]byte("of a field in the cluster " + k.Cluster))
	return mac.Sum(nil)
}

// Rules says what of an object goes. The paths are a subset of kubectl's JSONPath: .spec.containers[*].image,
// .metadata.annotations['a.b/c'], .status.conditions[0], with or without braces around.
//
// Drop and Keep come first, then Redact and Env.
type Rules struct {
	Drop []string // what is left out
	// Keep, where it is not empty, is all that is left in, with apiVersion, kind and the object's identity.
	Keep []string
	// Redact are values that become keyed hashes, so that a change of them is still seen. Of an object or a list all
	// values within do, and its keys stay.
	Redact []string
	// Env are patterns of environment variables, * for any text, without regard to case: in every list that is called
	// env the value of a variable with such a name is redacted, and in every map the value under such a key.
	Env []string
	// Applied says that kubectl's last-applied annotation is left in, which has an object in it as a text: the rules
	// are those of that object, too.
	Applied bool `json:",omitempty"`
	// Managed says that managedFields are left in. They have values in the names of members of lists and sets, which
	// are left out.
	Managed bool `json:",omitempty"`
}

// LastApplied is the path of the annotation in which kubectl apply keeps the object that it was given.
const LastApplied = ".metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']"

// Empty says whether the rules leave every object as it is.
func (r Rules) Empty() bool {
	return len(r.Drop) == 0 && len(r.Keep) == 0 && len(r.Redact) == 0 && len(r.Env) == 0
}

// Secrets are the rules of core/v1 Secrets, unless somebody wants them bare: neither their values nor what tools keep
// in annotations, which may be a copy of them. kubectl's copy is long, and changes with every value: it is cut.
func Secrets() Rules {
	return Rules{
		Drop:   []string{LastApplied},
		Redact: []string{".data", ".stringData", ".metadata.annotations"},
	}
}

// Join is both rules together.
func (r Rules) Join(other Rules) Rules {
	return Rules{
		Drop: append(r.Drop[:len(r.Drop):len(r.Drop)], other.Drop...), Keep: append(r.Keep[:len(r.Keep):len(r.Keep)], other.Keep...),
		Redact: append(r.Redact[:len(r.Redact):len(r.Redact)], other.Redact...), Env: append(r.Env[:len(r.Env):len(r.Env)], other.Env...),
		Applied: r.Applied || other.Applied, Managed: r.Managed || other.Managed,
	}
}

func (r Rules) hashes() bool { return len(r.Redact) > 0 || len(r.Env) > 0 || r.Applied }

// pattern is of names of environment variables, in capitals.
type pattern struct {
	part []byte         // of *PART*, as most are; else nil
	all  *regexp.Regexp // of others
}

func parsePattern(text string) (p pattern, err error) {
	if text == "" || strings.ContainsAny(text, `[]\`) {
		return p, fmt.Errorf("pattern %q of an environment variable: want a name, with * for any text and ? for any character, such as *PASSWORD*", text)
	}
	upper := strings.ToUpper(text)
	inner, open := strings.CutPrefix(upper, "*")
	if inner, closed := strings.CutSuffix(inner, "*"); open && closed && !strings.ContainsAny(inner, "*?") {
		p.part = []byte(inner)
		return p, nil
	}
	expression := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(upper))
	p.all, err = regexp.Compile("^(?s:" + expression + ")$")
	return p, err
}

// matches says whether the name in capitals is one of the pattern's.
func (p *pattern) matches(upper []byte) bool {
	if p.all == nil {
		return bytes.Contains(upper, p.part)
	}
	return p.all.Match(upper)
}
