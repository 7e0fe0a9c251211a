package typed

import (
	"strconv"
	"unicode/utf8"
)

// rest is what the types do not know of one object, as it grows: an object with what is left over, at the paths where
// it was. Objects on the way are begun when something is in them.
type rest struct {
	text []byte
	path []step
	open int // of the path's objects, how many are begun, with the outermost
}

// step is a key, as it is written, or an index.
type step struct {
	key   []byte
	index int
}

// state is what can be returned to.
type state struct{ text, path, open int }

func (r *rest) reset() { r.text, r.path, r.open = r.text[:0], r.path[:0], 0 }

func (r *rest) state() state { return state{len(r.text), len(r.path), r.open} }

func (r *rest) back(to state) {
	r.text, r.path, r.open = r.text[:to.text], r.path[:to.path], to.open
}

func (r *rest) enter(s step) { r.path = append(r.path, s) }

func (r *rest) leave() {
	if r.open > len(r.path) {
		r.text = append(r.text, '}')
		r.open--
	}
	r.path = r.path[:len(r.path)-1]
}

// add puts a value at a step of the present path.
func (r *rest) add(s step, value []byte) {
	if r.open == 0 {
		r.text, r.open = append(r.text, '{'), 1
	}
	for r.open <= len(r.path) {
		r.member(r.path[r.open-1])
		r.text = append(r.text, '{')
		r.open++
	}
	r.member(s)
	r.text = appendValid(r.text, value)
}

func (r *rest) member(s step) {
	if r.text[len(r.text)-1] != '{' {
		r.text = append(r.text, ',')
	}
	if s.key != nil {
		r.text = appendValid(r.text, s.key)
	} else {
		r.text = append(strconv.AppendInt(append(r.text, '"'), int64(s.index), 10), '"')
	}
	r.text = append(r.text, ':')
}

// end is the whole text, nil where nothing is left over.
func (r *rest) end() []byte {
	if r.open == 0 {
		return nil
	}
	r.text = append(r.text, '}')
	return r.text
}

// appendValid appends a text with U+FFFD for each byte that is no UTF-8.
func appendValid(dst, text []byte) []byte {
	if utf8.Valid(text) {
		return append(dst, text...)
	}
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		dst = utf8.AppendRune(dst, r)
		text = text[n:]
	}
	return dst
}
