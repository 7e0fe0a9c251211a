package frame

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/kubecdc/kubecdc/internal/scan"
)

// span is a part of the bytes at hand; a part that was not found is the zero span.
type span struct{ start, end int }

func (s span) in(data []byte) []byte { return data[s.start:s.end] }
func (s span) found() bool           { return s.end > 0 }

// cursor steps through JSON. It never fails, it becomes unsure: where what it steps over is no JSON, or ends, it jumps
// to the end, where every further step stays.
type cursor struct {
	data   []byte
	pos    int
	key    []byte // of the member that member came to, without quotes
	start  int    // of that member, its key's quote
	unsure bool
}

func (c *cursor) giveUp() {
	c.pos = len(c.data)
	c.unsure = true
}

// at says whether b is next.
func (c *cursor) at(b byte) bool { return c.pos < len(c.data) && c.data[c.pos] == b }

// space steps over it.
func (c *cursor) space() { c.pos = scan.Space(c.data, c.pos) }

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// enter steps into the object at the cursor.
func (c *cursor) enter() {
	if c.space(); !c.at('{') {
		c.giveUp()
		return
	}
	c.pos++
}

// member steps to the value of the next member, or out of the object when there is none.
func (c *cursor) member() bool {
	if c.unsure {
		return false
	}
	first := c.data[c.pos-1] == '{' // enter stepped over one
	if c.space(); c.at('}') {
		c.pos++
		return false
	}
	if !first {
		if !c.at(',') {
			c.giveUp()
			return false
		}
		c.pos++
		c.space()
	}
	c.start = c.pos
	c.skipString()
	end := c.pos
	if c.space(); c.unsure || !c.at(':') {
		c.giveUp()
		return false
	}
	if c.key = c.data[c.start+1 : end-1]; bytes.IndexByte(c.key, '\\') >= 0 {
		c.key = []byte(scan.TextOf(c.data[c.start:end]))
	}
	c.pos++
	c.space()
	return true
}

// value steps over a value and keeps its place. Of a key that comes twice the last value counts.
func (c *cursor) value(place *span) {
	start := c.pos
	c.skip()
	*place = span{start, c.pos}
}

// skip steps over a value.
func (c *cursor) skip() {
	switch {
	case c.at('"'):
		c.skipString()
	case c.at('{') || c.at('['):
		c.skipNested()
	default:
		c.skipScalar()
	}
}

// entries is value for managedFields. An API server writes it as an array of objects that hold no array, so it ends at
// the first bracket that is not in a string. The names of maps' keys are in it as strings, and whoever writes objects
// chooses them: so a bracket counts only where what follows proves that it is in no string.
func (c *cursor) entries(place *span) {
	text := c.data[c.pos:]
	n := bytes.IndexByte(text, ']')
	if n < 1 || text[n-1] != '}' || text[0] != '[' || bytes.IndexByte(text[1:n], '[') >= 0 || !opensKey(text[n+1:]) {
		c.value(place)
		return
	}
	*place = span{c.pos, c.pos + n + 1}
	c.pos = place.end
}

// opensKey says whether p begins, after braces that close, with a comma, a quote and a letter. Were that within a
// string, the quote, which no backslash escapes, would end it; but in compact JSON a string is never followed by a
// letter.
func opensKey(p []byte) bool {
	for len(p) > 0 && p[0] == '}' {
		p = p[1:]
	}
	return len(p) > 2 && p[0] == ',' && p[1] == '"' && 'a' <= p[2] && p[2] <= 'z'
}

// cut is what to take out with the member whose value the cursor is behind: all that is between it and the member
// before, the comma with it; where none before stays, what is before the next. last is what was cut before.
func (c *cursor) cut(last span) span {
	from := c.start
	for isSpace(c.data[from-1]) {
		from--
	}
	if c.data[from-1] == ',' && last.end != c.start {
		for from--; isSpace(c.data[from-1]); {
			from--
		}
		return span{from, c.pos}
	}
	next := *c
	if next.space(); !next.at(',') {
		return span{c.start, c.pos}
	}
	next.pos++
	next.space()
	return span{c.start, next.pos}
}

func (c *cursor) skipNested() {
	var b scan.Balance
	b.Enter()
	n := b.Skip(c.data[c.pos+1:])
	if n < 0 {
		c.giveUp()
		return
	}
	c.pos += 1 + n
}

// skipScalar steps over a number, true, false or null.
func (c *cursor) skipScalar() {
	start := c.pos
	for c.pos < len(c.data) && !ends[c.data[c.pos]] {
		c.pos++
	}
	if c.pos == start {
		c.giveUp()
	}
}

// ends are the bytes that cannot be in a number or a name.
var ends = [256]bool{',': true, '}': true, ']': true, '{': true, '[': true, ':': true, '"': true, ' ': true, '\t': true, '\r': true, '\n': true}

// shortString is how many bytes of a string are looked at before TextEnd is worth its call.
const shortString = 32

// skipString steps over a string.
func (c *cursor) skipString() {
	if !c.at('"') {
		c.giveUp()
		return
	}
	p := c.data[c.pos+1:]
	i, n := 0, len(`"`)
	for ; i <= min(len(p), shortString)-scan.WordBytes; i += scan.WordBytes {
		if found := scan.QuoteOrBackslash(binary.LittleEndian.Uint64(p[i : i+scan.WordBytes])); found != 0 {
			i += bits.TrailingZeros64(found) / 8
			break
		}
	}
	if i >= len(p) || p[i] != '"' {
		if n = scan.TextEnd(p[i:]); n < 0 {
			c.giveUp()
			return
		}
	}
	c.pos += len(`"`) + i + n
}
