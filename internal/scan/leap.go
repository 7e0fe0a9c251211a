package scan

import "bytes"

// leap is value for an object or list in a proven text. Only brackets and quotes are looked at, and what is watched is
// searched for: without escapes a key is written in one way.
func (c *Cursor) leap(start int) int {
	var b Balance
	b.Enter()
	for i := start + 1; ; {
		end := len(c.text)
		if c.watch.on {
			end = c.written(i)
		}
		if n := b.Skip(c.text[i:end]); n >= 0 {
			return i + n
		}
		if end == len(c.text) {
			return none
		}
		if place := c.member(end); place > 0 && b.quoted == 0 {
			if i = c.visited(place, c.depth); i < 0 {
				return none
			}
			continue
		}
		b.Step(c.text[end]) // a quote, which ends no container
		i = end + 1
	}
}

// written returns where the watched key is written next with its quotes, from i on; else the end.
func (c *Cursor) written(i int) int {
	w, p := &c.watch, c.text
	if w.found && w.next >= i {
		return w.next
	}
	w.found, w.next = true, len(p)
	last := len(w.key) - 1
	for at := i + 1 + last; at < len(p); at++ { // of the key's last letter, since there are few of it
		n := bytes.IndexByte(p[at:], w.key[last])
		if n < 0 {
			break
		}
		at += n
		if first := at - last; p[first-1] == '"' && string(p[first:at+1]) == w.key && at+1 < len(p) && p[at+1] == '"' {
			w.next = first - 1
			break
		}
	}
	return w.next
}

// member returns where the value of the watched key is that is written at i; 0 where it is no key but a value.
func (c *Cursor) member(i int) int {
	i = space(c.text, i+len(c.watch.key)+len(`""`))
	if i >= len(c.text) || c.text[i] != ':' {
		return 0
	}
	return space(c.text, i+1)
}
