package typed

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/kubecdc/kubecdc/internal/scan"
)

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
	dst = binary.AppendVarint(dst, int64(n))
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

// mapped writes a map, unless a key comes more than once. Entries that do not fit are in the rest.
func (e *Encoder) mapped(dst []byte, t *Type, c scan.Cursor) (all []byte, ok bool) {
	if c.Byte() != '{' {
		return dst, false
	}
	total, unique := e.count(c)
	if !unique {
		return dst, false
	}
	start := len(dst)
	dst = binary.AppendVarint(dst, int64(total))
	head, n := len(dst), 0
	for c = inside(c); c.Next('}'); {
		key := c.Key()
		fits := false
		if dst, fits = e.entry(dst, t, key, c); fits {
			n++
		}
		if len(dst) > e.limit {
			return dst, false
		}
		c.Skip()
	}
	if n < total { // whose count is not shorter
		entries := dst[head:]
		dst = append(binary.AppendVarint(dst[:start], int64(n)), entries...)
	}
	if n == 0 {
		return dst, true // the end of the blocks
	}
	return append(dst, 0), true
}

// entry writes one of a map, or puts it into the rest.
func (e *Encoder) entry(dst []byte, t *Type, key []byte, at scan.Cursor) (all []byte, fits bool) {
	mark, before := len(dst), e.rest
	if text := scan.Text(key); !lossy(text) {
		if dst, fits = e.element(appendText(dst, text), t, step{key: key}, at); fits || len(dst) > e.limit {
			return dst, fits
		}
	}
	e.rest = before
	e.rest.add(step{key: key}, at.Skip())
	return dst[:mark], false
}

// Encoder makes Avro of objects of one type, one after the other in the same memory. It is for one goroutine.
type Encoder struct {
	t     *Type
	proof scan.Proof
	rest  rest
	spare rest          // of an object within
	slots []scan.Cursor // what the objects that are being written have of each field; the zero value is nothing
	seed  maphash.Seed
	keys  []uint64 // of one map, hashed
	limit int      // of dst
}

// NewEncoder is for objects of the type, a record.
func NewEncoder(t *Type) *Encoder {
	return &Encoder{t: t, seed: maphash.MakeSeed()}
}

// Type is what it makes Avro of.
func (e *Encoder) Type() *Type { return e.t }

// ErrNoObject is what Append says of other texts.
var ErrNoObject = errors.New("write an object as Avro: it is no JSON object")

// An object may become larger than its JSON by the factor, and by the bytes.
const (
	growth = 16
	grace  = 64 << 10
)

// Append appends the object in Avro's binary encoding to dst.
func (e *Encoder) Append(dst, object []byte) ([]byte, error) {
	e.rest.reset()
	e.slots = e.slots[:0]
	defer e.proof.Forget()
	e.proof.Prove(object, "")
	c := e.proof.Cursor()
	if !e.proof.Whole() || c.Byte() != '{' {
		return dst, ErrNoObject
	}
	e.limit = len(dst) + growth*len(object) + grace
	start := len(dst)
	return e.object(append(dst, first), start, e.t, c), nil
}

// object writes an object with its rest, whose place is at start.
func (e *Encoder) object(dst []byte, start int, t *Type, c scan.Cursor) []byte {
	dst, ok := e.record(dst, t, c)
	if !ok {
		dst = e.none(dst[:start+1], t, c)
	}
	if left := e.rest.end(); left != nil {
		dst = insertText(dst, start, left)
	}
	return dst
}

// none is an object that is all in the rest.
func (e *Encoder) none(dst []byte, t *Type, c scan.Cursor) []byte {
	e.rest.reset()
	for c = inside(c); c.Next('}'); {
		e.rest.add(step{key: c.Key()}, c.Skip())
	}
	return append(dst, make([]byte, len(t.Fields))...)
}

// whole writes an object that has a rest of its own. What is before it does not count in how large it may become.
func (e *Encoder) whole(dst []byte, t *Type, c scan.Cursor) (all []byte, ok bool) {
	if c.Byte() != '{' {
		return dst, false
	}
	outer, limit, end := e.rest, e.limit, c
	e.rest = e.spare
	e.rest.reset()
	e.limit = len(dst) + growth*len(end.Skip()) + grace
	dst = e.object(append(dst, first), len(dst), t, c)
	e.spare, e.rest, e.limit = e.rest, outer, limit
	return dst, true
}

// insertText puts the second branch of a union with null, a text, in the place of one byte.
func insertText(dst []byte, at int, text []byte) []byte {
	branch := append(binary.AppendVarint([]byte{second}, int64(len(text))), text...)
	return slices.Replace(dst, at, at+1, branch...)
}

// The branches of a union with null, as they are written.
const (
	first  = 0
	second = 2
)

// record writes an object, unless a field comes more than once. What the type lacks is in the rest.
func (e *Encoder) record(dst []byte, t *Type, c scan.Cursor) (all []byte, ok bool) {
	if c.Byte() != '{' {
		return dst, false
	}
	base := len(e.slots)
	e.slots = slices.Grow(e.slots, len(t.Fields))[:base+len(t.Fields)]
	clear(e.slots[base:])
	ok = e.find(t, c, e.slots[base:])
	for i := 0; ok && i < len(t.Fields); i++ {
		dst, ok = e.field(dst, &t.Fields[i], e.slots[base+i])
	}
	e.slots = e.slots[:base]
	return dst, ok
}

// field writes one. It is not ok where the object has become too large.
func (e *Encoder) field(dst []byte, f *Field, at scan.Cursor) (all []byte, ok bool) {
	if len(dst) > e.limit {
		return dst, false
	}
	if at == (scan.Cursor{}) {
		return append(dst, first), true
	}
	if at.Byte() == 'n' {
		e.rest.add(step{key: f.key}, []byte("null"))
		return append(dst, first), true
	}
	dst, ok = e.branch(dst, f.Type, step{key: f.key}, at)
	return dst, ok || len(dst) <= e.limit
}

// branch writes a value as the second branch of a union with null, or null where it does not fit, and then it is in the
// rest. ok says which.
func (e *Encoder) branch(dst []byte, t *Type, at step, c scan.Cursor) (all []byte, ok bool) {
	mark, before := len(dst), e.rest
	dst, ok = e.value(append(dst, second), t, at, c)
	if ok {
		return dst, true
	}
	if len(dst) > e.limit {
		return dst, false
	}
	e.rest = before
	e.rest.add(at, c.Skip())
	return append(dst[:mark], first), false
}

// value writes a value, with what its type lacks of it in the rest. It is not ok where it does not fit.
func (e *Encoder) value(dst []byte, t *Type, at step, c scan.Cursor) (all []byte, ok bool) {
	if !t.holds() {
		raw := c.Skip()
		dst, exact, ok := scalar(dst, t, raw)
		if ok && !exact {
			e.rest.add(at, raw)
		}
		return dst, ok
	}
	if t.Rest {
		return e.whole(dst, t, c)
	}
	e.rest.enter(at)
	switch t.Kind {
	case List:
		dst, ok = e.list(dst, t, c)
	case Map:
		dst, ok = e.mapped(dst, t, c)
	default:
		dst, ok = e.record(dst, t, c)
	}
	if ok {
		e.rest.leave()
	}
	return dst, ok
}

// scalar writes a value that has none within. It is not exact where the text cannot be made of it again.
func scalar(dst []byte, t *Type, raw []byte) (all []byte, exact, ok bool) {
	switch t.Kind {
	case Text:
		return appendText(dst, raw), true, true
	case Bool:
		if raw[0] == 't' {
			return append(dst, 1), true, true
		}
		return append(dst, 0), true, raw[0] == 'f'
	case Long:
		if !isInteger(raw) {
			return dst, false, false
		}
		n, err := strconv.ParseInt(string(raw), 10, 64)
		return binary.AppendVarint(dst, n), true, err == nil // not all are of 64 bits
	case Double:
		return double(dst, raw)
	case Time:
		if raw[0] != '"' {
			return dst, false, false
		}
		micros, exact, ok := microseconds(scan.Text(raw), t.Digits)
		return binary.AppendVarint(dst, micros), exact, ok
	}
	if raw[0] != '"' {
		exact = t.Kind == IntOrString && isInteger(raw)
		return appendText(dst, raw), exact, t.Kind != String && isNumber(raw)
	}
	text := scan.Text(raw)
	exact = !lossy(text) && (t.Kind != IntOrString || !isInteger(text))
	return appendText(dst, text), exact, true
}

// lossy says whether a text may have been another one before it was read: what is no character becomes this one.
func lossy(text []byte) bool { return bytes.Contains(text, []byte("\ufffd")) }

// appendText appends a string of Avro.
func appendText(dst, text []byte) []byte {
	start := len(dst)
	dst = append(binary.AppendVarint(dst, int64(len(text))), text...)
	if !utf8.Valid(dst[len(dst)-len(text):]) {
		valid := appendValid(nil, text)
		dst = append(binary.AppendVarint(dst[:start], int64(len(valid))), valid...)
	}
	return dst
}

func double(dst, raw []byte) (all []byte, exact, ok bool) {
	f, err := 0.0, strconv.ErrSyntax
	if isNumber(raw) {
		f, err = strconv.ParseFloat(string(raw), 64)
	}
	if err != nil {
		return dst, false, false
	}
	var again [32]byte
	exact = bytes.Equal(appendDouble(again[:0], f), raw)
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f)), exact, true
}

// find notes where an object has the fields of its type, unless one comes more than once. Other members are in the
// rest.
func (e *Encoder) find(t *Type, c scan.Cursor, slots []scan.Cursor) (ok bool) {
	for c = inside(c); c.Next('}'); {
		key := c.Key()
		switch i, known := t.field(key); {
		case !known:
			e.rest.add(step{key: key}, c.Skip())
			continue
		case slots[i] != (scan.Cursor{}):
			return false
		default:
			slots[i] = c
		}
		c.Skip()
	}
	return true
}

// field finds the field that is written so, with its quotes.
func (t *Type) field(key []byte) (i int, known bool) {
	if inner := key[1 : len(key)-1]; bytes.IndexByte(inner, '\\') < 0 {
		i, known = t.index[string(inner)]
		return i, known
	}
	i, known = t.index[string(scan.Text(key))]
	return i, known
}

// count says how many members an object has, and whether no key comes more than once.
func (e *Encoder) count(c scan.Cursor) (n int, unique bool) {
	e.keys = e.keys[:0]
	for c = inside(c); c.Next('}'); c.Skip() {
		e.keys = append(e.keys, maphash.Bytes(e.seed, scan.Text(c.Key())))
	}
	slices.Sort(e.keys)
	n = len(e.keys)
	return n, len(slices.Compact(e.keys)) == n
}

// inside steps into an object or a list.
func inside(c scan.Cursor) scan.Cursor {
	c.Enter()
	return c
}
