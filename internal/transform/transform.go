package transform

import "errors"

// envKey is what lists of environment variables are called.
const envKey = "env"

// Transform is a set of rules that is ready to be applied. It is safe for concurrent use.
type Transform struct {
	paths  *node
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
	t := &Transform{paths: &node{}, key: key.bytes(), binds: rules.hashes() && !key.Comparable}
	kept := rules.Keep
	if len(kept) > 0 {
		kept = append(Identity(), kept...)
	}
	if rules.Applied {
		if err := t.paths.add(inside, "", []string{LastApplied}); err != nil {
			return nil, err
		}
	}
	if rules.Managed {
		if err := t.paths.add(fields, "", []string{".metadata.managedFields[*].fieldsV1"}); err != nil {
			return nil, err
		}
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
