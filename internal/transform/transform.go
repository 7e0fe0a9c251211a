package transform

import "errors"

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
	// env the value of a variable with such a name is redacted.
	Env []string
}

// Empty says whether the rules leave every object as it is.
func (r Rules) Empty() bool {
	return len(r.Drop) == 0 && len(r.Keep) == 0 && len(r.Redact) == 0 && len(r.Env) == 0
}

// Secrets are the rules of core/v1 Secrets, unless somebody wants them bare: neither their values nor what tools keep
// in annotations, which may be a copy of them. kubectl's copy is long, and changes with every value: it is cut.
func Secrets() Rules {
	return Rules{
		Drop:   []string{".metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']"},
		Redact: []string{".data", ".stringData", ".metadata.annotations"},
	}
}

// Join is both rules together.
func (r Rules) Join(other Rules) Rules {
	return Rules{
		Drop: append(r.Drop[:len(r.Drop):len(r.Drop)], other.Drop...), Keep: append(r.Keep[:len(r.Keep):len(r.Keep)], other.Keep...),
		Redact: append(r.Redact[:len(r.Redact):len(r.Redact)], other.Redact...), Env: append(r.Env[:len(r.Env):len(r.Env)], other.Env...),
	}
}

// envKey is what lists of environment variables are called.
const envKey = "env"

// Transform is a set of rules that is ready to be applied. It is safe for concurrent use.
type Transform struct {
	paths  *node
	env    []pattern
	key    []byte
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

// New parses the rules. The key is of the hashes; whoever has it can test guesses of what is behind one. An error names
// the path or pattern that is wrong.
func New(rules Rules, key []byte) (*Transform, error) {
	if len(key) == 0 {
		return nil, errors.New("make a transform: no key for hashes")
	}
	t := &Transform{paths: &node{}, key: key}
	kept := rules.Keep
	if len(kept) > 0 {
		kept = append(Identity(), kept...)
	}
	if err := t.paths.add(drop, "drop", rules.Drop); err != nil {
		return nil, err
	}
	if err := t.paths.add(keep, "keep", kept); err != nil {
		return nil, err
	}
	if err := t.paths.add(redact, "redact", rules.Redact); err != nil {
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

// Identity is what an object always keeps.
func Identity() []string {
	return []string{".apiVersion", ".kind", ".metadata.name", ".metadata.namespace", ".metadata.uid", ".metadata.resourceVersion"}
}

// Watched is the key that a proof has to watch for a Worker; "" is none.
func (t *Transform) Watched() string {
	if len(t.env) == 0 {
		return ""
	}
	return envKey
}
