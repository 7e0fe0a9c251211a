package transform

import (
	"strings"

	"github.com/kubecdc/kubecdc/internal/scan"
)

// envKey is what lists of environment variables are called.
const envKey = "env"

// variable is an object in a list of environment variables.
type variable struct {
	at     int // in the text
	hidden bool
}

// hidden says whether the object at the cursor is an environment variable whose value nobody may see.
func (r *rewriter) hidden() bool {
	at := r.At()
	if at >= r.foreseen {
		ahead := r.Cursor
		r.variables, r.next = r.variables[:0], 0
		r.foresee(&ahead, true)
		r.foreseen = ahead.At()
	}
	for r.variables[r.next].at < at { // in what was left out
		r.next++
	}
	return r.variables[r.next].hidden
}

// foresee notes the variables of a value, and of every env within: once for the outermost, since to look ahead in each
// would cost the square of their depth.
func (r *rewriter) foresee(c *scan.Cursor, env bool) {
	switch c.Byte() {
	case '[':
		c.Enter()
		for c.Next(']') {
			r.foresee(c, env)
		}
	case '{':
		place := len(r.variables)
		if env {
			r.variables = append(r.variables, variable{at: c.At()})
		}
		c.Enter()
		for c.Next('}') {
			key := scan.Text(c.Key())
			if !env || string(key) != "name" || c.Byte() != '"' {
				r.foresee(c, string(key) == envKey)
				continue
			}
			name := scan.Text(c.Skip())
			r.variables[place].hidden = r.variables[place].hidden || r.matches(string(name))
		}
	default:
		c.Skip()
	}
}

func (r *rewriter) matches(name string) bool {
	upper := strings.ToUpper(name)
	for _, pattern := range r.env {
		if pattern.matches(upper) {
			return true
		}
	}
	return false
}
