package transform

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path"
	"strings"
)

// rewriter reads one valid JSON text and writes what is left of it. Its methods read the value at at, and leave at
// behind it.
type rewriter struct {
	*Transform
	in  []byte
	at  int
	out []byte
}

// scope is what the rules say of a value.
type scope struct {
	drop, keep, redact []*node // where the paths stand
	kept               bool    // a path of keep ended above, or there is none
	hashed             bool    // a path of redact ended above
	env                bool    // the value is a list called env, or a variable in one
}

// member is the scope of a value under the key, and whether the value is left in.
func (s scope) member(key []byte) (scope, bool) {
	inner, left := s.step(func(at []*node) ([]*node, bool) { return field(at, key) })
	inner.env = string(key) == "env"
	return inner, left
}

// item is the scope of the value at the index, and whether it is left in.
func (s scope) item(index int) (scope, bool) {
	inner, left := s.step(func(at []*node) ([]*node, bool) { return element(at, index) })
	inner.env = s.env
	return inner, left
}

func (s scope) step(follow func([]*node) ([]*node, bool)) (scope, bool) {
	drop, dropped := follow(s.drop)
	keep, kept := follow(s.keep)
	redact, hashed := follow(s.redact)
	inner := scope{drop: drop, keep: keep, redact: redact, kept: s.kept || kept, hashed: s.hashed || hashed}
	return inner, !dropped && (inner.kept || len(keep) > 0)
}

// touches says whether a rule may look into the value.
func (s *scope) touches(t *Transform) bool {
	return !s.kept || s.hashed || len(s.drop) > 0 || len(s.redact) > 0 || len(t.env) > 0
}

func (r *rewriter) value(s scope) {
	if s.touches(r.Transform) {
		switch r.in[r.at] {
		case '{':
			r.object(s)
			return
		case '[':
			r.list(s)
			return
		}
	}
	token := r.skip()
	switch {
	case s.hashed && string(token) != "null" && !(r.again && isHash(token)):
		r.hash(token)
	default:
		r.out = append(r.out, token...)
	}
}

func (r *rewriter) object(s scope) {
	hidden := s.env && r.hidden()
	r.out = append(r.out, '{')
	start := len(r.out)
	r.each('}', func(int) {
		raw := r.skip()
		r.punctuation() // the colon
		key := unquote(raw)
		inner, left := s.member(key)
		inner.hashed = inner.hashed || hidden && string(key) == "value"
		if !left || !r.mayKeep(inner) {
			r.skip()
			return
		}
		r.comma(start)
		r.out = append(append(r.out, raw...), ':')
		r.value(inner)
	})
	r.out = append(r.out, '}')
}

func (r *rewriter) list(s scope) {
	r.out = append(r.out, '[')
	start := len(r.out)
	r.each(']', func(index int) {
		inner, left := s.item(index)
		if !left || !r.mayKeep(inner) {
			r.skip()
			return
		}
		r.comma(start)
		r.value(inner)
	})
	r.out = append(r.out, ']')
}

// mayKeep is false for a scalar where a path of keep looks for something within.
func (r *rewriter) mayKeep(s scope) bool {
	return s.kept || r.in[r.at] == '{' || r.in[r.at] == '['
}

// each calls do before each member of the container at at, which do reads, and passes what stands between and around.
func (r *rewriter) each(end byte, do func(index int)) {
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
func (r *rewriter) comma(start int) {
	if len(r.out) > start {
		r.out = append(r.out, ',')
	}
}

// hidden says whether the object at at is an environment variable whose value nobody may see.
func (r *rewriter) hidden() bool {
	ahead := rewriter{in: r.in, at: r.at}
	found := false
	ahead.each('}', func(int) {
		key := unquote(ahead.skip())
		ahead.punctuation()
		value := ahead.skip()
		if string(key) == "name" && value[0] == '"' {
			found = found || r.matches(string(unquote(value)))
		}
	})
	return found
}

func (r *rewriter) matches(name string) bool {
	for _, pattern := range r.env {
		if matched, err := path.Match(pattern, strings.ToUpper(name)); matched || err != nil {
			return true
		}
	}
	return false
}

// hash writes the keyed hash of a scalar: the first 128 bits of HMAC-SHA-256 (RFC 2104) over a string's characters, or
// over another scalar's digits or letters.
func (r *rewriter) hash(token []byte) {
	mac := hmac.New(sha256.New, r.key)
	if token[0] == '"' {
		token = unquote(token)
	}
	mac.Write(token)
	r.out = append(r.out, '"')
	r.out = append(r.out, hashPrefix...)
	r.out = hex.AppendEncode(r.out, mac.Sum(nil)[:hashSize])
	r.out = append(r.out, '"')
}

// hashPrefix is before the digits of a hash, and hashSize how many bytes these are of.
const (
	hashPrefix = "hmac-sha256:"
	hashSize   = 16
)

// isHash says whether the token looks as hash writes one.
func isHash(token []byte) bool {
	digits, found := bytes.CutPrefix(token, []byte(`"`+hashPrefix))
	return found && len(digits) == 2*hashSize+1 && len(bytes.Trim(digits[:2*hashSize], "0123456789abcdef")) == 0
}

// skip passes the value at at and returns it.
func (r *rewriter) skip() []byte {
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

func (r *rewriter) skipString() {
	for r.at++; r.in[r.at] != '"'; r.at++ {
		if r.in[r.at] == '\\' {
			r.at++
		}
	}
	r.at++
}

// skipWord passes a number, true, false or null.
func (r *rewriter) skipWord() {
	for r.at < len(r.in) && strings.IndexByte(",:]} \t\n\r", r.in[r.at]) < 0 {
		r.at++
	}
}

// punctuation passes one character and the white space behind it.
func (r *rewriter) punctuation() {
	r.at++
	r.space()
}

func (r *rewriter) space() {
	for r.at < len(r.in) && strings.IndexByte(" \t\n\r", r.in[r.at]) >= 0 {
		r.at++
	}
}

// unquote is the text of a JSON string, which may share the token's memory.
func unquote(token []byte) []byte {
	if inner := token[1 : len(token)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	var text string
	if err := json.Unmarshal(token, &text); err != nil {
		return token // cannot be: the whole text is valid
	}
	return []byte(text)
}
