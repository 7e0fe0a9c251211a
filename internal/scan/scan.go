package scan

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
)

// maxDepth is how deeply encoding/json lets values be nested.
const maxDepth = 10000

// value returns where the value at i ends, or none.
func (q *Proof) value(i, depth int) int {
	if i >= len(q.text) {
		return none
	}
	switch q.text[i] {
	case '"':
		return q.string(i)
	case '{':
		return q.object(i, depth+1)
	case '[':
		return q.list(i, depth+1)
	case 't':
		return word(q.text, i, "true")
	case 'f':
		return word(q.text, i, "false")
	case 'n':
		return word(q.text, i, "null")
	}
	return q.number(i)
}

// longString is how many bytes of a string are not looked at again.
const longString = 128

func (q *Proof) string(i int) int {
	end := str(q.text, i)
	if end-i >= longString {
		q.closed(q.open(i), end)
	}
	return end
}

func (q *Proof) object(i, depth int) int {
	p, n := q.text, q.open(i)
	if i = Space(p, i+1); depth > maxDepth || i >= len(p) {
		return none
	}
	if p[i] == '}' {
		return q.closed(n, i+1)
	}
	for {
		key := i
		if i = str(p, i); i < 0 {
			return none
		}
		watched := q.key != "" && q.isKey(p[key:i])
		if i = Space(p, i); i >= len(p) || p[i] != ':' {
			return none
		}
		i = Space(p, i+1)
		if watched && i < len(p) && (p[i] == '{' || p[i] == '[') {
			q.watched = append(q.watched, uint32(len(q.places)))
		}
		if i = q.value(i, depth); i < 0 {
			return none
		}
		if i = Space(p, i); i >= len(p) || p[i] != ',' {
			break
		}
		i = Space(p, i+1)
	}
	return q.closed(n, closing(p, i, '}'))
}

func (q *Proof) list(i, depth int) int {
	p, n := q.text, q.open(i)
	if i = Space(p, i+1); depth > maxDepth || i >= len(p) {
		return none
	}
	if p[i] == ']' {
		return q.closed(n, i+1)
	}
	for {
		if i = q.value(i, depth); i < 0 {
			return none
		}
		if i = Space(p, i); i >= len(p) || p[i] != ',' {
			break
		}
		i = Space(p, i+1)
	}
	return q.closed(n, closing(p, i, ']'))
}

// open notes a place, and returns its number.
func (q *Proof) open(i int) int {
	q.places = append(q.places, place{start: uint32(i)})
	return len(q.places) - 1
}

// closed notes where the place ends, and returns that.
func (q *Proof) closed(n, end int) int {
	q.places[n].end, q.places[n].next = uint32(end), uint32(len(q.places))
	return end
}

// isKey says whether the key, as it is written, is the watched one. Each of its letters is written as itself or, with
// five bytes more, as \u and four digits: there is no other escape of a letter.
func (q *Proof) isKey(token []byte) bool {
	const escape = len(`\u0000`) - len("e")
	more := len(token) - len(`""`) - len(q.key)
	if more == 0 {
		return string(token[1:len(token)-1]) == q.key
	}
	return more > 0 && more%escape == 0 && more <= escape*len(q.key) && bytes.IndexByte(token, '\\') > 0 && string(Text(token)) == q.key
}

// number returns where the number at i ends, and remembers whether it is too large for a float64.
func (q *Proof) number(i int) int {
	p, start := q.text, i
	if p[i] == '-' {
		i++
	}
	switch {
	case i >= len(p):
		return none
	case p[i] == '0':
		i++
	default:
		if i = digits(p, i); i < 0 {
			return none
		}
	}
	if i < len(p) && p[i] == '.' {
		if i = digits(p, i+1); i < 0 {
			return none
		}
	}
	exponent := i < len(p) && p[i]|0x20 == 'e'
	if exponent {
		if i++; i < len(p) && (p[i] == '+' || p[i] == '-') {
			i++
		}
		if i = digits(p, i); i < 0 {
			return none
		}
	}
	if exponent || i-start > shortNumber {
		q.measure(p[start:i])
	}
	return i
}

// shortNumber is how many digits cannot be too large for a float64, which has 309.
const shortNumber = 300

func (q *Proof) measure(number []byte) {
	value, err := strconv.ParseFloat(string(number), 64)
	q.huge = q.huge || err != nil || math.IsInf(value, 0)
}

// Prove looks at the whole text. What is a value under the key, of letters only, is remembered if it is an object or a
// list.
func (p *Proof) Prove(text []byte, key string) {
	*p = Proof{text: text, places: p.places[:0], watched: p.watched[:0], key: key}
	p.prove(0)
}

// prove begins at a depth, which is negative for what may be deeper than encoding/json takes.
func (p *Proof) prove(depth int) {
	if len(p.text) > math.MaxUint32 {
		return
	}
	end := p.value(Space(p.text, 0), depth)
	p.whole = end >= 0 && Space(p.text, end) == len(p.text)
}

// envelopes are how many brackets may be around an object: an envelope's, and those of a patch.
const envelopes = 4

// Members hands on the members of an object, and says whether the text is one. It takes an object around one that is as
// deep as encoding/json takes, and as the API server does. encoding/json does not.
func Members(text []byte, each func(name string, value []byte)) bool {
	p := Proof{text: text}
	p.prove(-envelopes)
	c := p.Cursor()
	if !p.whole || c.Byte() != '{' {
		return false
	}
	for c.Enter(); c.Next('}'); {
		each(string(Text(c.Key())), c.Skip())
	}
	return true
}

// Fields are the members of an object, by their exact names; nil is that the text is none. It is not unique where a
// name comes twice, or where the text is no object or more follows: two readers may then see two objects.
//
// Tenants write these texts. encoding/json would take "ResourceVersion" for resourceVersion, and of two the last one;
// the API server reads neither like that.
func Fields(text []byte) (all map[string]json.RawMessage, unique bool) {
	all, unique = map[string]json.RawMessage{}, true
	is := Members(text, func(name string, value []byte) {
		_, twice := all[name]
		all[name], unique = value, unique && !twice
	})
	if !is {
		return nil, false
	}
	return all, unique
}

// TextOf is the text of a field, "" where it is none.
func TextOf(value json.RawMessage) (text string) {
	if json.Unmarshal(value, &text) != nil {
		return ""
	}
	return text
}

// Cursor steps through a text that is proven to be JSON, from its front to its end.
type Cursor struct {
	proof *Proof
	at    int
	place int  // the first that does not start before it
	fresh bool // a container was just entered
}

// At is where the cursor stands in the text.
func (c *Cursor) At() int { return c.at }

// Place is the number of the object, list or long string at which the cursor stands, or of the next one.
func (c *Cursor) Place() int { return c.place }

// Byte is the byte at which the cursor stands, 0 at the end.
func (c *Cursor) Byte() byte {
	if c.at >= len(c.proof.text) {
		return 0
	}
	return c.proof.text[c.at]
}

// Enter steps into the object or list at which the cursor stands.
func (c *Cursor) Enter() {
	c.at, c.place, c.fresh = Space(c.proof.text, c.at+1), c.place+1, true
}

// Next says whether there is one more member in the container, which the bracket closes, and steps to it. After the
// last one it steps out. Each member must be stepped over before the next one.
func (c *Cursor) Next(bracket byte) bool {
	text := c.proof.text
	if !c.fresh {
		c.at = Space(text, c.at)
	}
	if text[c.at] == bracket {
		c.at, c.fresh = c.at+1, false
		return false
	}
	if !c.fresh {
		c.at = Space(text, c.at+1) // after a comma
	}
	c.fresh = false
	return true
}

// Key steps to the member's value, and returns its key as it is written, with its quotes.
func (c *Cursor) Key() []byte {
	text, start := c.proof.text, c.at
	end := str(text, start)
	c.at = Space(text, Space(text, end)+1)
	return text[start:end]
}

// Skip steps over the value at which the cursor stands, and returns it.
func (c *Cursor) Skip() []byte {
	text, places, start := c.proof.text, c.proof.places, c.at
	switch {
	case c.place < len(places) && int(places[c.place].start) == start: // an object, a list or a long string
		c.at, c.place = int(places[c.place].end), int(places[c.place].next)
	case text[start] == '"':
		c.at = str(text, start)
	default:
		c.at = scalar(text, start)
	}
	return text[start:c.at]
}

// Field steps into the object at which the cursor stands, to the value of the field, and says how many fields there
// are. Of a key that comes twice the last one counts.
func (c Cursor) Field(name string) (found Cursor, there bool, fields int) {
	c.Enter()
	for ; c.Next('}'); fields++ {
		if string(Text(c.Key())) == name {
			found, there = c, true
		}
		c.Skip()
	}
	return found, there, fields
}

// scalar returns where the number or word at i ends.
func scalar(p []byte, i int) int {
	for ; i < len(p); i++ {
		switch p[i] {
		case ',', '}', ']', ' ', '\n', '\t', '\r':
			return i
		}
	}
	return i
}

// Cursor stands at the text's value.
func (p *Proof) Cursor() Cursor { return Cursor{proof: p, at: Space(p.text, 0)} }

// Find is the value to which the names of fields lead, nil where there is none.
func (p *Proof) Find(path ...string) []byte {
	if !p.whole {
		return nil
	}
	c := p.Cursor()
	for _, name := range path {
		there := c.Byte() == '{'
		if there {
			c, there, _ = c.Field(name)
		}
		if !there {
			return nil
		}
	}
	return c.Skip()
}

// FindText is what the string says to which the names of fields lead; false where there is none, or another value.
func (p *Proof) FindText(path ...string) (text string, found bool) {
	token := p.Find(path...)
	if len(token) == 0 || token[0] != '"' {
		return "", false
	}
	return string(Text(token)), true
}

// At stands at a place.
func (p *Proof) At(place int) Cursor {
	return Cursor{proof: p, at: int(p.places[place].start), place: place}
}

// Proof says of one text whether it is JSON, and where the objects, lists and long strings in it are. It is used again
// for the next text. It has places in the text as numbers of four bytes, since there are many of them.
type Proof struct {
	text    []byte
	places  []place  // of the objects, lists and long strings, as they start in the text
	watched []uint32 // of the places
	key     string   // of those that are watched; "" is none
	whole   bool
	huge    bool // a number is too large for a float64
}

// place is where one is, and the number of the first that starts after it.
type place struct{ start, end, next uint32 }

// Whole says whether the text is one JSON value. Nothing else counts where it is not.
func (p *Proof) Whole() bool { return p.whole }

// Huge says whether a number in it is too large for a float64.
func (p *Proof) Huge() bool { return p.huge }

// Watched are the places that are values under the key.
func (p *Proof) Watched() []uint32 { return p.watched }

// Forget lets go of the text, and of memory that few texts need.
func (p *Proof) Forget() {
	const most = 1 << 20 // bytes
	if 12*cap(p.places)+4*cap(p.watched) > most {
		p.places, p.watched = nil, nil
	}
	p.text, p.whole = nil, false
}
