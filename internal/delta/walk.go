package delta

import (
	"bytes"
	"strconv"

	"github.com/kubecdc/kubecdc/internal/scan"
)

// maxDepth is how deep values are looked into. Schemas of schemas are the deepest that people write.
const maxDepth = 48

// taker is told of each difference: an operation of a patch, the pointer as the inside of a JSON string, and the new
// value. It says whether it takes more.
type taker interface {
	take(op string, pointer, value []byte) (more bool)
}

// The operations of a patch that are used.
const (
	add     = "add"
	remove  = "remove"
	replace = "replace"
)

// walk goes through two values at once.
type walk struct {
	to    taker
	over  bool
	path  []byte
	depth int
	parts []part // of all that is being looked into, each after that of its container
}

func (w *walk) begin(to taker) {
	w.to, w.over, w.path, w.depth, w.parts = to, false, w.path[:0], 0, w.parts[:0]
}

// forget lets go of the objects, and of memory that few of them need.
func (w *walk) forget() {
	const most = 1 << 10
	if cap(w.parts) > most {
		w.parts = nil
	}
	clear(w.parts[:cap(w.parts)])
	w.to = nil
}

func (w *walk) tell(op string, value []byte) { w.over = w.over || !w.to.take(op, w.path, value) }

// value compares two values.
func (w *walk) value(before, after scan.Cursor) {
	b, a := before, after
	from, to := b.Skip(), a.Skip()
	if w.over || bytes.Equal(from, to) {
		return
	}
	kind := before.Byte()
	if kind != after.Byte() || kind != '{' && kind != '[' || w.depth == maxDepth {
		w.tell(replace, to)
		return
	}
	w.depth++
	start := len(w.parts)
	if kind == '{' {
		w.objects(before, after, to)
	} else {
		w.lists(before, after)
	}
	w.parts = w.parts[:start]
	w.depth--
}

// take puts the parts of the container on the stack, and returns where they begin.
func (w *walk) take(c scan.Cursor) (start int) {
	start = len(w.parts)
	isObject, bracket := c.Byte() == '{', byte(']')
	if isObject {
		bracket = '}'
	}
	c.Enter()
	for c.Next(bracket) {
		var p part
		if isObject {
			p.raw = c.Key()
			p.key = scan.Text(p.raw)
		}
		p.at = c
		p.text = c.Skip()
		w.parts = append(w.parts, p)
	}
	return start
}

// lists compares two lists.
func (w *walk) lists(before, after scan.Cursor) {
	first := w.take(before)
	second := w.take(after)
	bs, as := w.parts[first:second:second], w.parts[second:]
	front := 0
	for front < len(bs) && front < len(as) && bytes.Equal(bs[front].text, as[front].text) {
		front++
	}
	for len(bs) > front && len(as) > front && bytes.Equal(bs[len(bs)-1].text, as[len(as)-1].text) {
		bs, as = bs[:len(bs)-1], as[:len(as)-1]
	}
	for i := front; i < min(len(bs), len(as)) && !w.over; i++ {
		w.at(i, func() { w.value(bs[i].at, as[i].at) })
	}
	for i := len(bs) - 1; i >= len(as) && !w.over; i-- {
		w.at(i, func() { w.tell(remove, nil) })
	}
	for i := len(bs); i < len(as) && !w.over; i++ {
		w.at(i, func() { w.tell(add, as[i].text) })
	}
}

// at is within an element.
func (w *walk) at(i int, do func()) {
	length := len(w.path)
	w.path = strconv.AppendInt(append(w.path, '/'), int64(i), 10)
	do()
	w.path = w.path[:length]
}

// objects compares two objects. Text is the second.
func (w *walk) objects(before, after scan.Cursor, text []byte) {
	first := w.take(before)
	second := w.take(after)
	bs, as := w.parts[first:second:second], w.parts[second:]
	found, clear := match(bs, as)
	if !clear {
		w.tell(replace, text)
		return
	}
	for i := range bs {
		if found[i] < 0 && !w.over {
			w.within(bs[i].key, func() { w.tell(remove, nil) })
		}
	}
	there := found[len(bs):]
	for i := range as {
		switch {
		case w.over:
			return
		case there[i] < 0:
			w.within(as[i].key, func() { w.tell(add, as[i].text) })
		case !bytes.Equal(bs[there[i]].text, as[i].text):
			w.within(as[i].key, func() { w.value(bs[there[i]].at, as[i].at) })
		}
	}
}

// within is within a member.
func (w *walk) within(key []byte, do func()) {
	length := len(w.path)
	w.path = appendToken(append(w.path, '/'), key)
	do()
	w.path = w.path[:length]
}
