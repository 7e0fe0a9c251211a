package typed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/kubecdc/kubecdc/internal/scan"
)

// Decoder makes objects of Avro again, of one type, one after the other. It is for one goroutine.
type Decoder struct {
	restorer
	t     *Type
	proof scan.Proof // of the rest
	inner scan.Proof // of the rest of an object within
	in    []byte     // what is not read yet
}

// NewDecoder is for what an Encoder of the same type wrote.
func NewDecoder(t *Type) *Decoder { return &Decoder{t: t} }

var errShort = errors.New("it ends too early")

// Append appends the object that is in Avro, as JSON, to dst.
func (d *Decoder) Append(dst, message []byte) ([]byte, error) {
	d.in, d.out, d.err = message, dst, nil
	defer d.proof.Forget()
	defer func() { d.in, d.out = nil, nil }()
	if left := d.left(&d.proof); d.err == nil {
		d.record(d.t, left)
	}
	if d.err == nil && len(d.in) > 0 {
		d.fail("%d bytes are left over", len(d.in))
	}
	if d.proof.Prove(d.out[min(len(dst), len(d.out)):], ""); d.err == nil && !d.proof.Whole() {
		d.fail("it is no JSON")
	}
	if d.err != nil {
		return dst, fmt.Errorf("read an object from Avro: %w", d.err)
	}
	return d.out, nil
}

func (d *Decoder) short() { d.fail("%w", errShort) }

// left reads the rest. It is nil where there is none.
func (d *Decoder) left(proof *scan.Proof) *scan.Cursor {
	if !d.branch() {
		return nil
	}
	proof.Prove(d.bytes(), "")
	if d.err == nil && !proof.Whole() {
		d.fail("%s is no JSON", RestName)
		return nil
	}
	c := proof.Cursor()
	return &c
}

// whole reads an object that has a rest of its own.
func (d *Decoder) whole(t *Type) {
	defer d.inner.Forget()
	if left := d.left(&d.inner); d.err == nil {
		d.record(t, left)
	}
}

// long reads a long of Avro.
func (d *Decoder) long() int64 {
	value, n := binary.Varint(d.in)
	if n <= 0 {
		d.short()
		return 0
	}
	d.in = d.in[n:]
	return value
}

// branch reads which of a union with null comes, and says whether it is the other one.
func (d *Decoder) branch() bool {
	n := d.long()
	if n != 0 && n != 1 {
		d.fail("a union has no branch %d", n)
	}
	return n == 1
}

// bytes reads a string of Avro.
func (d *Decoder) bytes() []byte {
	n := d.long()
	if n < 0 || n > int64(len(d.in)) {
		d.short()
		return nil
	}
	text := d.in[:n]
	d.in = d.in[n:]
	return text
}

func (d *Decoder) take(n int) []byte {
	if len(d.in) < n {
		d.short()
		return make([]byte, n)
	}
	taken := d.in[:n]
	d.in = d.in[n:]
	return taken
}

// value reads a value, of which something may be in the rest.
func (d *Decoder) value(t *Type, left *scan.Cursor) {
	if !t.holds() {
		start := len(d.out)
		d.scalar(t)
		if left != nil {
			d.out = append(d.out[:start], left.Skip()...)
		}
		return
	}
	if left != nil && left.Byte() != '{' {
		d.fail("%s has no object where a part of one is", RestName)
		return
	}
	switch {
	case t.Rest:
		d.whole(t)
	case t.Kind == List:
		d.list(t, left)
	case t.Kind == Map:
		d.mapped(t, left)
	default:
		d.record(t, left)
	}
}

func (d *Decoder) scalar(t *Type) {
	switch t.Kind {
	case Text:
		d.out = append(d.out, d.bytes()...)
	case Bool:
		d.out = strconv.AppendBool(d.out, d.take(1)[0] != 0)
	case Long:
		d.out = strconv.AppendInt(d.out, d.long(), 10)
	case Double:
		d.out = appendDouble(d.out, math.Float64frombits(binary.LittleEndian.Uint64(d.take(8))))
	case Time:
		d.out = append(appendTime(append(d.out, '"'), d.long(), t.Digits), '"')
	default:
		text := d.bytes()
		if t.Kind == IntOrString && isInteger(text) {
			d.out = append(d.out, text...)
			return
		}
		d.out = appendString(d.out, text)
	}
}

// list reads a list, whose elements may have something in the rest by their indices.
func (d *Decoder) list(t *Type, left *scan.Cursor) {
	parts := d.members(left)
	d.out = append(d.out, '[')
	for i := range d.items() {
		if i > 0 {
			d.out = append(d.out, ',')
		}
		part := parts.take(strconv.Itoa(i))
		d.element(t, part)
	}
	d.out = append(d.out, ']')
	if parts.left() > 0 {
		d.fail("%s has elements that are not in their list", RestName)
	}
}

func (d *Decoder) element(t *Type, left *scan.Cursor) {
	if t.Nullable && !d.branch() {
		d.out = append(d.out, "null"...)
		return
	}
	d.value(t.Elem, left)
}

// items yields the items of a list or of a map, which come in blocks.
func (d *Decoder) items() func(yield func(int) bool) {
	return func(yield func(int) bool) {
		at := 0
		for n := d.block(); n > 0; n = d.block() {
			for ; n > 0 && d.err == nil; n-- {
				if !yield(at) {
					return
				}
				at++
			}
		}
	}
}

// block reads how many items come next. Each takes a byte at least. After an error there are none.
func (d *Decoder) block() int64 {
	if d.err != nil {
		return 0
	}
	n := d.long()
	if n < 0 { // and its size in bytes
		n = -n
		d.long()
	}
	if n < 0 || n > int64(len(d.in)) {
		d.short()
		return 0
	}
	return n
}

// mapped reads a map, whose entries may be in the rest.
func (d *Decoder) mapped(t *Type, left *scan.Cursor) {
	parts := d.members(left)
	d.out = append(d.out, '{')
	start := len(d.out)
	for range d.items() {
		key := d.bytes()
		d.comma(start)
		d.out = append(appendString(d.out, key), ':')
		d.element(t, parts.take(string(key)))
	}
	d.others(parts, start)
	d.out = append(d.out, '}')
}

// record reads a record, of which fields and parts of fields may be in the rest.
func (d *Decoder) record(t *Type, left *scan.Cursor) {
	parts := d.members(left)
	d.out = append(d.out, '{')
	start := len(d.out)
	for i := range t.Fields {
		if d.err != nil {
			return
		}
		if f := &t.Fields[i]; d.branch() {
			d.comma(start)
			d.out = append(append(d.out, f.key...), ':')
			d.value(f.Type, parts.take(f.JSON))
		}
	}
	d.others(parts, start)
	d.out = append(d.out, '}')
}

// restorer puts an object together again, of its columns and of its rest.
type restorer struct {
	out []byte
	err error // the first
}

// fail keeps the first error.
func (d *restorer) fail(format string, values ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, values...)
	}
}

func (d *restorer) comma(start int) {
	if len(d.out) > start {
		d.out = append(d.out, ',')
	}
}

// parts are what the rest has of one value: members in their order, of which some are taken.
type parts struct {
	all   []part
	named map[string]int // where the last of a name is
	taken int
}

type part struct {
	key   []byte // nil where it is taken
	value scan.Cursor
}

// members are none where there is no rest.
func (d *restorer) members(left *scan.Cursor) *parts {
	if left == nil {
		return nil
	}
	p := &parts{named: map[string]int{}}
	if left.Byte() != '{' {
		d.fail("%s is no object", RestName)
		return nil
	}
	for c := inside(*left); c.Next('}'); c.Skip() {
		key := c.Key()
		p.named[string(scan.Text(key))] = len(p.all)
		p.all = append(p.all, part{key, c})
	}
	return p
}

// take is what there is of a name, once.
func (p *parts) take(name string) *scan.Cursor {
	if p == nil {
		return nil
	}
	i, found := p.named[name]
	if !found || p.all[i].key == nil {
		return nil
	}
	p.all[i].key = nil
	p.taken++
	return &p.all[i].value
}

func (p *parts) left() int {
	if p == nil {
		return 0
	}
	return len(p.all) - p.taken
}

// others writes what was not taken, as it is.
func (d *restorer) others(p *parts, start int) {
	if p.left() == 0 || d.err != nil {
		return
	}
	for i := range p.all {
		if one := &p.all[i]; one.key != nil {
			d.comma(start)
			d.out = append(append(d.out, one.key...), ':')
			d.out = append(d.out, one.value.Skip()...)
		}
	}
}
