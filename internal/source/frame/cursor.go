package frame

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/bits"

	"github.com/kubecdc/kubecdc/internal/scan"
)

// span is a part of the bytes at hand; a part that was not found is the zero span.
type span struct{ start, end int }

func (s span) in(data []byte) []byte { return data[s.start:s.end] }
func (s span) found() bool           { return s.end > 0 }

// cursor steps through compact JSON. It never fails, it becomes unsure: at anything that compact JSON with plain keys,
// none twice, does not have, it jumps to the end, where every further step stays. Of any JSON it is unsure where that
// ends.
type cursor struct {
	data   []byte
	pos    int
	any    bool   // JSON of any form is known: with space, and of a key that comes twice the last one counts
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

// space steps over it, in JSON of any form.
func (c *cursor) space() {
	for c.any && c.pos < len(c.data) && isSpace(c.data[c.pos]) {
		c.pos++
	}
}

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
	plain := c.skipString()
	end := c.pos
	if c.space(); !plain && !c.any || !c.at(':') {
		c.giveUp()
		return false
	}
	if c.key = c.data[c.start+1 : end-1]; !plain {
		c.key = []byte(text(c.data[c.start:end]))
	}
	c.pos++
	c.space()
	return true
}

// text is the string that the JSON is, "" where it is another value or none.
func text(value []byte) (s string) {
	if json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}

// value steps over a value and keeps its place. A second value for the same place is for the slow path.
func (c *cursor) value(place *span) {
	if place.found() && !c.any {
		c.giveUp()
		return
	}
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
	if place.found() || n < 1 || text[n-1] != '}' || text[0] != '[' || bytes.IndexByte(text[1:n], '[') >= 0 || !opensKey(text[n+1:]) {
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

// shortString is how many bytes of a string are looked at before IndexByte is worth its call.
const shortString = 32

// skipString steps over a string and says whether it is plain, without a backslash.
func (c *cursor) skipString() (plain bool) {
	if !c.at('"') {
		c.giveUp()
		return false
	}
	p := c.data[c.pos+1:]
	i := 0
	for ; i <= min(len(p), shortString)-scan.WordBytes; i += scan.WordBytes {
		if found := scan.QuoteOrBackslash(binary.LittleEndian.Uint64(p[i : i+scan.WordBytes])); found != 0 {
			i += bits.TrailingZeros64(found) / 8
			break
		}
	}
	if i < len(p) && p[i] == '"' {
		c.pos += i + 2
		return true
	}
	return c.skipLongString(p, i)
}

// skipLongString is skipString for a string whose first i bytes hold neither quote nor backslash.
func (c *cursor) skipLongString(p []byte, i int) (plain bool) {
	n := bytes.IndexByte(p[i:], '"')
	if n < 0 {
		c.giveUp()
		return false
	}
	slash := bytes.IndexByte(p[i:i+n], '\\')
	if slash < 0 {
		c.pos += i + n + 2
		return true
	}
	n = scan.TextEnd(p[i+slash:])
	if n < 0 {
		c.giveUp()
		return false
	}
	c.pos += 1 + i + slash + n
	return false
}
