package typed

import "github.com/kubecdc/kubecdc/internal/scan"

// list writes a list, unless an element does not fit.
func (e *Encoder) list(dst []byte, t *Type, c scan.Cursor) (all []byte, ok bool) {
	if c.Byte() != '[' {
		return dst, false
	}
	n := 0
	for count := inside(c); count.Next(']'); n++ {
		count.Skip()
	}
	if n == 0 {
		return append(dst, 0), true
	}
	dst = appendLong(dst, int64(n))
	c = inside(c)
	for i := 0; c.Next(']'); i++ {
		if dst, ok = e.element(dst, t, step{index: i}, c); !ok {
			return dst, false
		}
		c.Skip()
	}
	return append(dst, 0), true
}

// element writes one of a list or of a map, unless it does not fit.
func (e *Encoder) element(dst []byte, t *Type, at step, c scan.Cursor) (all []byte, ok bool) {
	switch {
	case len(dst) > e.limit:
		return dst, false
	case t.Nullable && c.Byte() == 'n':
		return append(dst, first), true
	case t.Nullable:
		dst = append(dst, second)
	}
	return e.value(dst, t.Elem, at, c)
}

// mapped writes a map. Entries that do not fit and keys that come more than once are in the rest.
func (e *Encoder) mapped(dst []byte, t *Type, c scan.Cursor) (all []byte, ok bool) {
	if c.Byte() != '{' {
		return dst, false
	}
	total, twice := e.count(c)
	start := len(dst)
	dst = appendLong(dst, int64(total))
	head, n := len(dst), 0
	for c = inside(c); c.Next('}'); {
		key := c.Key()
		fits := false
		if dst, fits = e.entry(dst, t, entry{key, c, twice}); fits {
			n++
		}
		if len(dst) > e.limit {
			return dst, false
		}
		c.Skip()
	}
	if n < total { // whose count is not shorter
		entries := dst[head:]
		dst = append(appendLong(dst[:start], int64(n)), entries...)
	}
	if n == 0 {
		return dst, true // the end of the blocks
	}
	return append(dst, 0), true
}

// entry is one of a map, some of whose keys come twice.
type entry struct {
	key   []byte
	at    scan.Cursor
	twice map[uint64]bool
}

// entry writes one, or puts it into the rest.
func (e *Encoder) entry(dst []byte, t *Type, one entry) (all []byte, fits bool) {
	mark, before := len(dst), e.rest.state()
	text := scan.Text(one.key)
	if !lossy(text) && !e.isTwice(one.twice, text) {
		if dst, fits = e.element(appendText(dst, text), t, step{key: one.key}, one.at); fits || len(dst) > e.limit {
			return dst, fits
		}
	}
	e.rest.back(before)
	e.rest.add(step{key: one.key}, one.at.Skip())
	return dst[:mark], false
}
