package scan

import "bytes"

// watch is what to stop for within a value.
type watch struct {
	on      bool
	key     string
	visit   func()
	escapes bool // of a proven text: keys may be written with other letters
	next    int  // of a proven text: where the key is written next, or the end; or where that is not known yet
	found   bool // next is known
}

// Watch has Pass call visit at the value of each member with the key, of letters only, which visit steps over.
func (c *Cursor) Watch(key string, visit func()) {
	c.watch = watch{on: true, key: key, visit: visit, escapes: c.proven && escapes(c.text)}
}

// escapes says whether the text may have letters written as \u and four digits.
func escapes(text []byte) bool {
	for i := 0; ; i += 2 { // behind a backslash that escapes the next one there is no escape
		n := bytes.IndexByte(text[i:], '\\')
		if n < 0 || i+n+1 >= len(text) {
			return false
		}
		if i += n; text[i+1] == 'u' {
			return true
		}
	}
}

// watched says whether the key, as it is written, is the one to stop for. Each of its letters is written as itself or,
// with five bytes more, as \u and four digits: there is no other escape of a letter.
func (c *Cursor) watched(token []byte) bool {
	const escape = len(`\u0000`) - len("e")
	more := len(token) - len(`""`) - len(c.watch.key)
	if more == 0 {
		return string(token[1:len(token)-1]) == c.watch.key
	}
	return more > 0 && more%escape == 0 && more <= escape*len(c.watch.key) && string(Text(token)) == c.watch.key
}

// visited returns where the value at i ends, which is a member of a container at the depth.
func (c *Cursor) visited(i, depth int) int {
	saved := c.depth
	c.at, c.depth = i, depth
	c.watch.visit()
	c.depth = saved
	if c.broken {
		return none
	}
	return c.at
}
