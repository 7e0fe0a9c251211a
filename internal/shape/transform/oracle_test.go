package transform

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// plain is the obvious way of a Transform: it reads all of the object, and holds the way to each value against each
// path.
type plain struct {
	drop, keep, redact [][]Step
	env                []string
	applied, again     bool
	managed            bool
	key                []byte
	bound              bool
}

func newPlain(t *Transform, rules Rules) *plain {
	kept := rules.Keep
	if len(kept) > 0 {
		kept = append(Identity(), kept...)
	}
	return &plain{drop: plainPaths(rules.Drop), keep: plainPaths(kept), redact: plainPaths(rules.Redact), env: rules.Env, applied: rules.Applied, managed: rules.Managed, again: t.again, key: t.key, bound: t.binds}
}

func (t *plain) apply(object []byte) ([]byte, error) { return t.applyAt(object, nil) }

// applyAt is apply where the object is itself the text of one, to which the path leads.
func (t *plain) applyAt(object []byte, path []string) ([]byte, error) {
	if !json.Valid(object) || bytes.TrimLeft(object, " \t\n\r")[0] != '{' {
		return nil, errors.New("not an object")
	}
	d := json.NewDecoder(bytes.NewReader(object))
	d.UseNumber()
	r := plainRewriter{plain: t, path: path, within: path != nil}
	r.value(plainTree(d, object), plainScope{kept: t.keep == nil})
	return r.out, nil
}

// node is a value, as it is written; of an object or a list the bracket, and what is within.
type node struct {
	raw     []byte
	members []member
}

type member struct {
	key   []byte // with its quotes; nil in a list
	value *node
}

// plainTree reads the decoder's next value, which is in the text.
func plainTree(d *json.Decoder, text []byte) *node {
	before := d.InputOffset()
	token, err := d.Token()
	if err != nil {
		panic(err) // the whole text is valid
	}
	n := &node{raw: bytes.TrimLeft(text[before:d.InputOffset()], " \t\n\r,:")}
	bracket, within := token.(json.Delim)
	for within && d.More() {
		var m member
		if bracket == '{' {
			m.key = plainTree(d, text).raw
		}
		m.value = plainTree(d, text)
		n.members = append(n.members, m)
	}
	if within {
		_, _ = d.Token() // the other bracket
	}
	return n
}

func plainPaths(paths []string) (all [][]Step) {
	for _, text := range paths {
		parts, err := parsePath(text)
		if err != nil {
			panic(err) // New has parsed it
		}
		all = append(all, parts)
	}
	return all
}

// plainLeads says whether one of the paths ends at the steps, and whether one leads further.
func plainLeads(paths [][]Step, steps []string) (ends, further bool) {
	for _, parts := range paths {
		if len(steps) > len(parts) {
			continue
		}
		leads := true
		for i, step := range steps {
			p, isField := parts[i], step[0] == 'k'
			leads = leads && (p.Any || p.Field == "" && step == fmt.Sprint("i", p.element) ||
				p.Field != "" && isField && step[1:] == p.Field)
		}
		ends, further = ends || leads && len(steps) == len(parts), further || leads && len(steps) < len(parts)
	}
	return ends, further
}

// plainRewriter writes what is left of one text.
type plainRewriter struct {
	*plain
	out    []byte
	path   []string
	within bool
}

// plainScope is what the rules say of a value.
type plainScope struct {
	kept   bool // a path of keep ended above, or there is none
	hashed bool // a path of redact ended above
	env    bool // the value is a list called env, or a variable in one
	listed bool // it is in such a list
}

// inner is the plainScope of a value within, to which the path leads, and whether it is left in.
func (r *plainRewriter) inner(n *node, s plainScope) (inner plainScope, left bool) {
	steps := r.steps()
	dropped, _ := plainLeads(r.drop, steps)
	kept, leads := plainLeads(r.keep, steps)
	hashed, _ := plainLeads(r.redact, steps)
	inner = plainScope{kept: s.kept || kept, hashed: s.hashed || hashed}
	return inner, !dropped && (inner.kept || leads && (n.raw[0] == '{' || n.raw[0] == '['))
}

// steps are those of the path in the innermost text.
func (r *plainRewriter) steps() []string { return r.path[slices.Index(r.path, "t")+1:] }

func (r *plainRewriter) value(n *node, s plainScope) {
	if r.applied && !s.hashed && slices.Equal(r.steps(), []string{"kmetadata", "kannotations", "kkubectl.kubernetes.io/last-applied-configuration"}) {
		if n.raw[0] == '"' && !r.within {
			if left, err := r.applyAt(plainUnquote(n.raw), append(slices.Clone(r.path), "t")); err == nil {
				quoted, _ := json.Marshal(string(left))
				r.out = append(r.out, quoted...)
				return
			}
		}
		s.hashed = true
	}
	switch {
	case n.raw[0] == '{' || n.raw[0] == '[':
		r.container(n, s)
	case s.hashed && string(n.raw) != "null" && !(r.again && plainIsHash(n.raw)):
		r.hash(n.raw)
	default:
		r.out = append(r.out, n.raw...)
	}
}

func (r *plainRewriter) container(n *node, s plainScope) {
	hidden := s.env && slices.ContainsFunc(n.members, func(m member) bool {
		return m.key != nil && string(plainUnquote(m.key)) == "name" && m.value.raw[0] == '"' && r.matches(string(plainUnquote(m.value.raw)))
	})
	r.out = append(r.out, n.raw[0])
	start := len(r.out)
	for index, m := range n.members {
		step, named := fmt.Sprint("i", index), false
		if m.key != nil {
			key := string(plainUnquote(m.key))
			step, named = "k"+key, r.names(key)
		}
		r.path = append(r.path, step)
		inner, left := r.inner(m.value, s)
		if m.key == nil {
			inner.env, inner.listed = s.env, true
		} else {
			inner.env = step == "kenv"
			inner.hashed = inner.hashed || hidden && step == "kvalue" || s.env && !s.listed && r.matches(step[1:])
		}
		if left && !named {
			if len(r.out) > start {
				r.out = append(r.out, ',')
			}
			if m.key != nil {
				r.out = append(append(r.out, m.key...), ':')
			}
			r.value(m.value, inner)
		}
		r.path = r.path[:len(r.path)-1]
	}
	r.out = append(r.out, n.raw[0]+2) // the other bracket
}

// names says whether the key is a value that managedFields name.
func (r *plainRewriter) names(key string) bool {
	at := r.steps()
	return r.managed && len(at) > 3 && at[0] == "kmetadata" && at[1] == "kmanagedFields" && at[3] == "kfieldsV1" && len(key) > 1 && (key[:2] == "k:" || key[:2] == "v:")
}

func (r *plainRewriter) matches(name string) bool {
	for _, pattern := range r.env {
		matched, err := path.Match(strings.ToUpper(pattern), strings.ReplaceAll(strings.ToUpper(name), "/", "|"))
		if matched || err != nil { // no pattern of the tests has a slash
			return true
		}
	}
	return false
}

// hash writes the keyed hash of a scalar: the first 128 bits of HMAC-SHA-256 (RFC 2104) over a string's characters, or
// over another scalar's digits or letters.
func (r *plainRewriter) hash(token []byte) {
	if token[0] == '"' {
		token = plainUnquote(token)
	}
	sum := r.sumOf(token)
	r.out = append(r.out, '"')
	r.out = append(r.out, hashPrefix...)
	r.out = hex.AppendEncode(r.out, sum[:hashSize])
	r.out = append(r.out, '"')
}

// sumOf is of the value alone, or of the owner, the path and the value: a path of more than 256 bytes in pieces.
func (r *plainRewriter) sumOf(value []byte) []byte {
	mac := func(texts ...[]byte) []byte {
		made := hmac.New(sha256.New, r.key)
		made.Write(bytes.Join(texts, nil))
		return made.Sum(nil)
	}
	if !r.bound {
		return mac(value)
	}
	counted := func(text string) []byte { return append(binary.AppendUvarint(nil, uint64(len(text))), text...) }
	owner := web()
	sum := mac([]byte("o"), counted(owner.Group), counted(owner.Kind), counted(owner.Namespace), counted(owner.Name))
	var piece []byte
	for _, step := range r.path {
		if step[0] == 't' { // what is in a text belongs to the text's place
			piece = append(piece, 't')
			continue
		}
		if piece = append(piece, step[0]); step[0] == 'k' {
			piece = append(piece, counted(step[1:])...)
		} else {
			index, _ := strconv.Atoi(step[1:])
			piece = binary.AppendUvarint(piece, uint64(index))
		}
		if len(piece) > 256 {
			sum, piece = mac(sum, []byte("p"), piece), nil
		}
	}
	return mac(sum, []byte("v"), counted(string(piece)), value)
}

// web is the object that all of these tests are about.
func web() Owner {
	return Owner{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
}

// isHash says whether the token looks as hash writes one.
func plainIsHash(token []byte) bool {
	digits, found := bytes.CutPrefix(token, []byte(`"`+hashPrefix))
	return found && len(digits) == 2*hashSize+1 && len(bytes.Trim(digits[:2*hashSize], "0123456789abcdef")) == 0
}

// unquote is the text of a JSON string, which may share the token's memory.
func plainUnquote(token []byte) []byte {
	if inner := token[1 : len(token)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	var text string
	if err := json.Unmarshal(token, &text); err != nil {
		return token // cannot be: the whole text is valid
	}
	return []byte(text)
}
