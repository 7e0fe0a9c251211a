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

// plain is the obvious way of a Transform: it proves first that the object is JSON, and then goes through all of it,
// and holds the way to each value against each path.
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

func (t *plain) apply(object []byte) ([]byte, error) {
	return t.applyAt(object, nil)
}

// applyAt is apply where the object is itself the text of one, to which the path leads.
func (t *plain) applyAt(object []byte, path []string) ([]byte, error) {
	r := plainRewriter{plain: t, in: object, path: path, within: path != nil}
	r.space()
	if !json.Valid(object) || r.in[r.at] != '{' {
		return nil, errors.New("not an object")
	}
	r.value(plainScope{kept: t.keep == nil})
	return r.out, nil
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

// plainRewriter reads one valid JSON text and writes what is left of it. Its methods read the value at at, and leave at
// after it.
type plainRewriter struct {
	*plain
	in     []byte
	at     int
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
func (r *plainRewriter) inner(s plainScope) (inner plainScope, left bool) {
	steps := r.path[slices.Index(r.path, "t")+1:]
	dropped, _ := plainLeads(r.drop, steps)
	kept, leads := plainLeads(r.keep, steps)
	hashed, _ := plainLeads(r.redact, steps)
	inner = plainScope{kept: s.kept || kept, hashed: s.hashed || hashed}
	return inner, !dropped && (inner.kept || leads && (r.in[r.at] == '{' || r.in[r.at] == '['))
}

func (r *plainRewriter) value(s plainScope) {
	if r.applied && !s.hashed && slices.Equal(r.path[slices.Index(r.path, "t")+1:], []string{"kmetadata", "kannotations", "kkubectl.kubernetes.io/last-applied-configuration"}) {
		if r.in[r.at] == '"' && !r.within {
			var text string
			if err := json.Unmarshal(ahead(r), &text); err == nil {
				if left, err := r.applyAt([]byte(text), append(slices.Clone(r.path), "t")); err == nil {
					r.skip()
					quoted, _ := json.Marshal(string(left))
					r.out = append(r.out, quoted...)
					return
				}
			}
		}
		s.hashed = true
	}
	switch r.in[r.at] {
	case '{':
		r.object(s)
		return
	case '[':
		r.list(s)
		return
	}
	token := r.skip()
	switch {
	case s.hashed && string(token) != "null" && !(r.again && plainIsHash(token)):
		r.hash(token)
	default:
		r.out = append(r.out, token...)
	}
}

func (r *plainRewriter) object(s plainScope) {
	hidden := s.env && r.hidden()
	r.out = append(r.out, '{')
	start := len(r.out)
	r.each('}', func(int) {
		raw := r.skip()
		r.punctuation() // the colon
		key := plainUnquote(raw)
		named := r.names(key)
		r.path = append(r.path, "k"+string(key))
		defer func() { r.path = r.path[:len(r.path)-1] }()
		inner, left := r.inner(s)
		inner.env = string(key) == "env"
		inner.hashed = inner.hashed || hidden && string(key) == "value"
		inner.hashed = inner.hashed || s.env && !s.listed && r.matches(string(key))
		if !left || named {
			r.skip()
			return
		}
		r.comma(start)
		r.out = append(append(r.out, raw...), ':')
		r.value(inner)
	})
	r.out = append(r.out, '}')
}

func (r *plainRewriter) list(s plainScope) {
	r.out = append(r.out, '[')
	start := len(r.out)
	r.each(']', func(index int) {
		r.path = append(r.path, fmt.Sprint("i", index))
		defer func() { r.path = r.path[:len(r.path)-1] }()
		inner, left := r.inner(s)
		inner.env, inner.listed = s.env, true
		if !left {
			r.skip()
			return
		}
		r.comma(start)
		r.value(inner)
	})
	r.out = append(r.out, ']')
}

// names says whether the key is a value that managedFields name.
func (r *plainRewriter) names(key []byte) bool {
	at := r.path[slices.Index(r.path, "t")+1:]
	return r.managed && len(at) > 3 && at[0] == "kmetadata" && at[1] == "kmanagedFields" && at[3] == "kfieldsV1" && len(key) > 1 && (string(key[:2]) == "k:" || string(key[:2]) == "v:")
}

// each calls do before each member of the container at at, which do reads, and passes what stands between and around.
func (r *plainRewriter) each(end byte, do func(index int)) {
	r.punctuation() // the bracket
	for index := 0; r.in[r.at] != end; index++ {
		do(index)
		r.space()
		if r.in[r.at] == ',' {
			r.punctuation()
		}
	}
	r.at++
}

// comma separates what follows from what was written since start.
func (r *plainRewriter) comma(start int) {
	if len(r.out) > start {
		r.out = append(r.out, ',')
	}
}

// hidden says whether the object at at is an environment variable whose value nobody may see.
func (r *plainRewriter) hidden() bool {
	ahead := plainRewriter{in: r.in, at: r.at}
	found := false
	ahead.each('}', func(int) {
		key := plainUnquote(ahead.skip())
		ahead.punctuation()
		value := ahead.skip()
		if string(key) == "name" && value[0] == '"' {
			found = found || r.matches(string(plainUnquote(value)))
		}
	})
	return found
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

// ahead is the value at at.
func ahead(r *plainRewriter) []byte {
	copied := plainRewriter{in: r.in, at: r.at}
	return copied.skip()
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

// skip passes the value at at and returns it.
func (r *plainRewriter) skip() []byte {
	start, depth := r.at, 0
	for {
		switch r.in[r.at] {
		case '"':
			r.skipString()
		case '{', '[':
			depth++
			r.at++
		case '}', ']':
			depth--
			r.at++
		case ',', ':', ' ', '\t', '\n', '\r':
			r.at++
			continue
		default:
			r.skipWord()
		}
		if depth == 0 {
			value := r.in[start:r.at]
			r.space()
			return value
		}
	}
}

func (r *plainRewriter) skipString() {
	for r.at++; r.in[r.at] != '"'; r.at++ {
		if r.in[r.at] == '\\' {
			r.at++
		}
	}
	r.at++
}

// skipWord passes a number, true, false or null.
func (r *plainRewriter) skipWord() {
	for r.at < len(r.in) && strings.IndexByte(",:]} \t\n\r", r.in[r.at]) < 0 {
		r.at++
	}
}

// punctuation passes one character and the white space after it.
func (r *plainRewriter) punctuation() {
	r.at++
	r.space()
}

func (r *plainRewriter) space() {
	for r.at < len(r.in) && strings.IndexByte(" \t\n\r", r.in[r.at]) >= 0 {
		r.at++
	}
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
