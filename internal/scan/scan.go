package scan

import (
	"math"
	"strconv"
)

// maxDepth is how deeply encoding/json lets values be nested.
const maxDepth = 10000

// none is the end of what is not JSON.
const none = -1

// value returns where the value at i ends, or none.
func (c *Cursor) value(i, depth int) int {
	if i >= len(c.text) {
		return none
	}
	switch c.text[i] {
	case '"':
		return str(c.text, i)
	case '{':
		return c.object(i, depth+1)
	case '[':
		return c.list(i, depth+1)
	case 't':
		return word(c.text, i, "true")
	case 'f':
		return word(c.text, i, "false")
	case 'n':
		return word(c.text, i, "null")
	}
	return c.number(i)
}

func (c *Cursor) object(i, depth int) int {
	p := c.text
	if i = space(p, i+1); depth > maxDepth || i >= len(p) {
		return none
	}
	if p[i] == '}' {
		return i + 1
	}
	for {
		key := i
		if i = str(p, i); i < 0 {
			return none
		}
		stop := c.watch.on && c.watched(p[key:i])
		if i = space(p, i); i >= len(p) || p[i] != ':' {
			return none
		}
		if i = space(p, i+1); stop {
			i = c.visited(i, depth)
		} else {
			i = c.value(i, depth)
		}
		if i < 0 {
			return none
		}
		if i = space(p, i); i >= len(p) || p[i] != ',' {
			break
		}
		i = space(p, i+1)
	}
	return closing(p, i, '}')
}

func (c *Cursor) list(i, depth int) int {
	p := c.text
	if i = space(p, i+1); depth > maxDepth || i >= len(p) {
		return none
	}
	if p[i] == ']' {
		return i + 1
	}
	for {
		if i = c.value(i, depth); i < 0 {
			return none
		}
		if i = space(p, i); i >= len(p) || p[i] != ',' {
			break
		}
		i = space(p, i+1)
	}
	return closing(p, i, ']')
}

func closing(p []byte, i int, bracket byte) int {
	if i >= len(p) || p[i] != bracket {
		return none
	}
	return i + 1
}

// space returns where the next byte is that is no white space.
func space(p []byte, i int) int {
	for i < len(p) && p[i] <= ' ' && (p[i] == ' ' || p[i] == '\n' || p[i] == '\t' || p[i] == '\r') {
		i++
	}
	return i
}

func word(p []byte, i int, want string) int {
	if len(p)-i < len(want) || string(p[i:i+len(want)]) != want {
		return none
	}
	return i + len(want)
}

// number returns where the number at i ends, and remembers whether it is too large for a float64.
func (c *Cursor) number(i int) int {
	p, start := c.text, i
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
		c.measure(p[start:i])
	}
	return i
}

// shortNumber is how many digits cannot be too large for a float64, which has 309.
const shortNumber = 300

func (c *Cursor) measure(number []byte) {
	value, err := strconv.ParseFloat(string(number), 64)
	c.huge = c.huge || err != nil || math.IsInf(value, 0)
}

// digits returns where the digits at i end, of which there must be one.
func digits(p []byte, i int) int {
	start := i
	for i < len(p) && '0' <= p[i] && p[i] <= '9' {
		i++
	}
	if i == start {
		return none
	}
	return i
}
