package delta

import (
	"bytes"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/kubecdc/kubecdc/internal/scan"
)

// Delta compares one pair of objects after the other with the same memory. It is for one goroutine at a time. The zero
// value is ready.
type Delta struct {
	proofs [2]scan.Proof
	walk   walk
}

// Patch appends to dst a patch that makes after of before. It is false, and dst as it was, where there is none of at
// most so many bytes, or one of both is no JSON object.
func (d *Delta) Patch(dst, before, after []byte, most int) ([]byte, bool) {
	start := len(dst)
	p := &patch{out: append(dst, '['), start: start, most: start + most}
	if !d.compare(before, after, p.take) || p.failed {
		return dst[:start], false
	}
	return append(p.out, ']'), true
}

// Changed appends to dst the pointers of what differs, a list of JSON. What changes with every update is left out. Cut
// says that there are more. It is false where one of both is no JSON object.
func (d *Delta) Changed(dst, before, after []byte) (list []byte, cut, ok bool) {
	p := &pointers{out: append(dst, '['), start: len(dst)}
	if !d.compare(before, after, p.take) {
		return dst, false, false
	}
	return append(p.out, ']'), p.cut, true
}

// compare tells of all differences: an operation of a patch, the pointer as the inside of a JSON string, and the new
// value. Who is told says whether it takes more.
func (d *Delta) compare(before, after []byte, tell func(op string, pointer, value []byte) (more bool)) bool {
	if !utf8.Valid(before) || !utf8.Valid(after) {
		return false
	}
	b, a := &d.proofs[0], &d.proofs[1]
	b.Prove(before, "")
	a.Prove(after, "")
	defer b.Forget()
	defer a.Forget()
	if !b.Whole() || !a.Whole() {
		return false
	}
	from, to := b.Cursor(), a.Cursor()
	if from.Byte() != '{' || to.Byte() != '{' {
		return false
	}
	w := &d.walk
	w.take, w.over, w.path, w.depth, w.parts = tell, false, w.path[:0], 0, w.parts[:0]
	w.value(from, to)
	w.forget()
	return true
}

// maxDepth is how deep values are looked into. Schemas of schemas are the deepest that people write.
const maxDepth = 48

// The operations of a patch that are used.
const (
	add     = "add"
	remove  = "remove"
	replace = "replace"
)

// walk goes through two values at once.
type walk struct {
	take  func(op string, pointer, value []byte) (more bool)
	over  bool
	path  []byte
	depth int
	parts []part // of all that is being looked into, each after that of its container
}

// forget lets go of the objects, and of memory that few of them need.
func (w *walk) forget() {
	const most = 1 << 10
	if cap(w.parts) > most {
		w.parts = nil
	}
	clear(w.parts[:cap(w.parts)])
	w.take = nil
}

func (w *walk) tell(op string, value []byte) { w.over = w.over || !w.take(op, w.path, value) }

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

// push puts the parts of the container on the stack, and returns where they begin.
func (w *walk) push(c scan.Cursor) (start int) {
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
	first := w.push(before)
	second := w.push(after)
	bs, as := w.parts[first:second:second], w.parts[second:]
	front := 0
	for front < len(bs) && front < len(as) && bytes.Equal(bs[front].text, as[front].text) {
		front++
	}
	for len(bs) > front && len(as) > front && bytes.Equal(bs[len(bs)-1].text, as[len(as)-1].text) {
		bs, as = bs[:len(bs)-1], as[:len(as)-1]
	}
	for i := front; i < min(len(bs), len(as)) && !w.over; i++ {
		w.within([]byte(strconv.Itoa(i)), func() { w.value(bs[i].at, as[i].at) })
	}
	for i := len(bs) - 1; i >= len(as) && !w.over; i-- {
		w.within([]byte(strconv.Itoa(i)), func() { w.tell(remove, nil) })
	}
	for i := len(bs); i < len(as) && !w.over; i++ {
		w.within([]byte(strconv.Itoa(i)), func() { w.tell(add, as[i].text) })
	}
}

// objects compares two objects. Text is the second.
func (w *walk) objects(before, after scan.Cursor, text []byte) {
	first := w.push(before)
	second := w.push(after)
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

// within is within a member, or an element of a list.
func (w *walk) within(key []byte, do func()) {
	length := len(w.path)
	w.path = appendToken(append(w.path, '/'), key)
	do()
	w.path = w.path[:length]
}

// part is a member of an object, or an element of a list.
type part struct {
	raw  []byte // the key as it is written
	key  []byte // what it says
	at   scan.Cursor
	text []byte // the value
}

// match finds for each member of the one object where it is in the other, -1 where it is not: first those of before,
// then those of after. It is not clear where a key stands twice, or says what no text can.
func match(before, after []part) (found []int, clear bool) {
	found = make([]int, len(before)+len(after))
	for i := range found {
		found[i] = -1
	}
	there := found[len(before):]
	sameKey := func(b, a part) bool { return bytes.Equal(b.raw, a.raw) }
	if slices.EqualFunc(before, after, sameKey) && isPlain(before) {
		for i := range before {
			found[i], there[i] = i, i
		}
		return found, true
	}
	index := make(map[string]int, len(before))
	for i := range before {
		if _, twice := index[string(before[i].key)]; twice || before[i].odd() {
			return nil, false
		}
		index[string(before[i].key)] = i
	}
	seen := make(map[string]struct{}, len(after))
	for i := range after {
		if _, twice := seen[string(after[i].key)]; twice || after[i].odd() {
			return nil, false
		}
		seen[string(after[i].key)] = struct{}{}
		if at, both := index[string(after[i].key)]; both {
			found[at], there[i] = i, at
		}
	}
	return found, true
}

// few is up to how many keys each is compared with each. Of more an index is made.
const few = 24

// isPlain says whether there are few keys, none is there twice, and none is odd.
func isPlain(parts []part) bool {
	for i := range parts {
		twice := func(other part) bool { return bytes.Equal(other.key, parts[i].key) }
		if len(parts) > few || parts[i].odd() || slices.ContainsFunc(parts[:i], twice) {
			return false
		}
	}
	return true
}

// odd says whether the key may be written in escapes that no text says, such as half of a pair.
func (p *part) odd() bool {
	return bytes.IndexByte(p.raw, '\\') >= 0 && bytes.Contains(p.key, []byte("\uFFFD"))
}

// patch writes operations.
type patch struct {
	out         []byte
	start, most int
	failed      bool
}

func (p *patch) take(op string, pointer, value []byte) (more bool) {
	if len(p.out)+len(pointer)+len(value) > p.most || len(pointer) == 0 {
		p.failed = true
		return false
	}
	if len(p.out) > p.start+1 {
		p.out = append(p.out, ',')
	}
	p.out = append(append(p.out, `{"op":"`...), op...)
	p.out = append(append(append(p.out, `","path":"`...), pointer...), '"')
	if value != nil {
		p.out = append(append(p.out, `,"value":`...), value...)
	}
	p.out = append(p.out, '}')
	return true
}

// What pointers are told, at most.
const (
	mostPointers     = 64
	mostPointerBytes = 4 << 10
)

// pointers writes where something differs.
type pointers struct {
	out   []byte
	start int
	n     int
	cut   bool
}

func (p *pointers) take(_ string, pointer, _ []byte) (more bool) {
	if isUsual(pointer) {
		return true
	}
	if p.n == mostPointers || len(p.out)-p.start+len(pointer) > mostPointerBytes {
		p.cut = true
		return p.n < mostPointers
	}
	if p.n > 0 {
		p.out = append(p.out, ',')
	}
	p.out = append(append(append(p.out, '"'), pointer...), '"')
	p.n++
	return true
}

// isUsual says whether it is what changes with every update.
func isUsual(pointer []byte) bool {
	rest, managed := bytes.CutPrefix(pointer, []byte("/metadata/managedFields"))
	return managed && (len(rest) == 0 || rest[0] == '/') || string(pointer) == "/metadata/resourceVersion"
}

// appendToken appends a key as a step of a pointer (RFC 6901), as the inside of a JSON string.
func appendToken(dst, key []byte) []byte {
	const hex = "0123456789abcdef"
	for _, c := range key {
		switch {
		case c == '~':
			dst = append(dst, "~0"...)
		case c == '/':
			dst = append(dst, "~1"...)
		case c == '"', c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return dst
}
