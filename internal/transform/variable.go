package transform

import (
	"bytes"
	"unicode/utf8"

	"github.com/kubecdc/kubecdc/internal/scan"
)

// variable is an object in a list of environment variables.
type variable struct {
	at     int // in the text
	hidden bool
}

// isBare steps ahead through an outermost env, to note its variables, and says whether there is nothing in it for any
// rule.
func (r *rewriter) isBare(s scope) bool {
	if !s.env || r.At() < r.foreseen {
		return false
	}
	ahead := r.Cursor
	r.variables, r.next = r.variables[:0], 0
	hides := r.foresee(&ahead, s)
	r.foreseen = ahead.At()
	return !hides && s.kept && !s.hashed && !s.names && s.from == s.to
}

// isHidden says whether the object at the cursor is an environment variable whose value nobody may see.
func (r *rewriter) isHidden() bool {
	at := r.At()
	for r.variables[r.next].at < at { // in what was left out
		r.next++
	}
	return r.variables[r.next].hidden
}

// foresee notes the variables of a value, and of every env within: once for the outermost, since to look ahead in each
// would cost the square of their depth. It says whether one of them may hide a value.
func (r *rewriter) foresee(c *scan.Cursor, s scope) (hides bool) {
	switch c.Byte() {
	case '[':
		s.listed = true
		c.Enter()
		for c.Next(']') {
			hides = r.foresee(c, s) || hides
		}
	case '{':
		hides = r.foreseeObject(c, s)
	default:
		c.Skip()
	}
	return hides
}

func (r *rewriter) foreseeObject(c *scan.Cursor, s scope) (hides bool) {
	place := len(r.variables)
	if s.env {
		r.variables = append(r.variables, variable{at: c.At()})
	}
	c.Enter()
	for c.Next('}') {
		key := scan.Text(c.Key())
		hides = hides || s.env && !s.listed && r.matches(key)
		if !s.env || string(key) != "name" || c.Byte() != '"' {
			hides = r.foresee(c, scope{env: string(key) == envKey}) || hides
			continue
		}
		if name := scan.Text(c.Skip()); r.matches(name) {
			r.variables[place].hidden, hides = true, true
		}
	}
	return hides
}

func (r *rewriter) matches(name []byte) bool {
	upper := r.upper(name)
	for i := range r.env {
		if r.env[i].matches(upper) {
			return true
		}
	}
	return false
}

// upper is the name in capitals, in memory that the next name gets.
func (r *rewriter) upper(name []byte) []byte {
	r.text = r.text[:0]
	for _, c := range name {
		if c >= utf8.RuneSelf {
			return bytes.ToUpper(name)
		}
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		r.text = append(r.text, c)
	}
	return r.text
}
