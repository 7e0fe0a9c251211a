package scan

import (
	"bytes"
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
	if i = space(p, i+1); depth > maxDepth || i >= len(p) {
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
		if i = space(p, i); i >= len(p) || p[i] != ':' {
			return none
		}
		i = space(p, i+1)
		if watched && i < len(p) && (p[i] == '{' || p[i] == '[') {
			q.watched = append(q.watched, uint32(len(q.places)))
		}
		if i = q.value(i, depth); i < 0 {
			return none
		}
		if i = space(p, i); i >= len(p) || p[i] != ',' {
			break
		}
		i = space(p, i+1)
	}
	return q.closed(n, closing(p, i, '}'))
}

func (q *Proof) list(i, depth int) int {
	p, n := q.text, q.open(i)
	if i = space(p, i+1); depth > maxDepth || i >= len(p) {
		return none
	}
	if p[i] == ']' {
		return q.closed(n, i+1)
	}
	for {
		if i = q.value(i, depth); i < 0 {
			return none
		}
		if i = space(p, i); i >= len(p) || p[i] != ',' {
			break
		}
		i = space(p, i+1)
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
	end := p.value(space(p.text, 0), depth)
	p.whole = end >= 0 && space(p.text, end) == len(p.text)
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
