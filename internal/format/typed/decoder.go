package typed

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/avro"

	"github.com/kubecdc/kubecdc/internal/scan"
)

// Decoder makes objects of Avro again, of one type, one after the other. It is for one goroutine.
type Decoder struct {
	t      *Type
	schema *avro.Schema
	broken error // why there is no schema
	out    []byte
	err    error // the first
}

// NewDecoder is for what an Encoder of the same type wrote.
func NewDecoder(t *Type) *Decoder {
	schema, err := avro.Parse(string(t.Avro()))
	return &Decoder{t: t, schema: schema, broken: err}
}

// Append appends the object that is in Avro, as JSON, to dst.
func (d *Decoder) Append(dst, message []byte) ([]byte, error) {
	d.out, d.err = dst, d.broken
	defer func() { d.out = nil }()
	if d.err == nil {
		var value any
		left, err := d.schema.Decode(message, &value)
		switch {
		case err != nil:
			d.err = err
		case len(left) > 0:
			d.fail("%d bytes are left over", len(left))
		default:
			d.whole(d.t, value.(map[string]any))
		}
	}
	if d.err == nil && !json.Valid(d.out[len(dst):]) {
		d.fail("it is no JSON")
	}
	if d.err != nil {
		return dst, fmt.Errorf("read an object from Avro: %w", d.err)
	}
	return d.out, nil
}

// fail keeps the first error.
func (d *Decoder) fail(format string, values ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, values...)
	}
}

// whole puts an object together that has a rest of its own.
func (d *Decoder) whole(t *Type, columns map[string]any) {
	var left *scan.Cursor
	if text, has := columns[RestName].(string); has {
		var proof scan.Proof
		if proof.Prove([]byte(text), ""); !proof.Whole() {
			d.fail("%s is no JSON", RestName)
			return
		}
		c := proof.Cursor()
		left = &c
	}
	d.record(t, columns, left)
}

// value puts a value together, of which something may be in the rest.
func (d *Decoder) value(t *Type, value any, left *scan.Cursor) {
	switch {
	case !t.holds() && left != nil:
		d.out = append(d.out, left.Skip()...)
	case !t.holds():
		d.scalar(t, value)
	case t.Rest:
		d.whole(t, value.(map[string]any))
	case t.Kind == List:
		d.list(t, value.([]any), left)
	case t.Kind == Map:
		d.mapped(t, value.(map[string]any), left)
	default:
		d.record(t, value.(map[string]any), left)
	}
}

func (d *Decoder) scalar(t *Type, value any) {
	switch v := value.(type) {
	case bool:
		d.out = strconv.AppendBool(d.out, v)
	case int64:
		d.out = strconv.AppendInt(d.out, v, 10)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			d.fail("%v is no number of JSON", v)
		}
		d.out = appendDouble(d.out, v)
	case time.Time:
		d.out = append(appendTime(append(d.out, '"'), v.UnixMicro(), t.Digits), '"')
	case string:
		if t.Kind == Text || t.Kind == IntOrString && isInteger([]byte(v)) {
			d.out = append(d.out, v...)
		} else {
			d.out = appendString(d.out, []byte(v))
		}
	}
}

// list puts a list together, whose elements may have something in the rest by their indices.
func (d *Decoder) list(t *Type, values []any, left *scan.Cursor) {
	parts := d.members(left)
	d.out = append(d.out, '[')
	for i, value := range values {
		if i > 0 {
			d.out = append(d.out, ',')
		}
		d.element(t, value, parts.take(strconv.Itoa(i)))
	}
	d.out = append(d.out, ']')
	if len(parts.named) > 0 {
		d.fail("%s has elements that are not in their list", RestName)
	}
}

func (d *Decoder) element(t *Type, value any, left *scan.Cursor) {
	if value == nil {
		d.out = append(d.out, "null"...)
		return
	}
	d.value(t.Elem, value, left)
}

// mapped puts a map together, whose entries may be in the rest.
func (d *Decoder) mapped(t *Type, entries map[string]any, left *scan.Cursor) {
	parts, start := d.begin(left)
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		d.key(start, appendString(nil, []byte(key)))
		d.element(t, entries[key], parts.take(key))
	}
	d.end(parts, start)
}

// record puts a record together, of which fields and parts of fields may be in the rest.
func (d *Decoder) record(t *Type, columns map[string]any, left *scan.Cursor) {
	parts, start := d.begin(left)
	for i := range t.Fields {
		if f := &t.Fields[i]; columns[f.Name] != nil {
			d.key(start, f.key)
			d.value(f.Type, columns[f.Name], parts.take(f.JSON))
		}
	}
	d.end(parts, start)
}

// begin begins an object.
func (d *Decoder) begin(left *scan.Cursor) (of parts, start int) {
	d.out = append(d.out, '{')
	return d.members(left), len(d.out)
}

// end writes what was not taken, as it is.
func (d *Decoder) end(of parts, start int) {
	for _, one := range of.all {
		if one.key != nil {
			d.key(start, one.key)
			d.out = append(d.out, one.value.Skip()...)
		}
	}
	d.out = append(d.out, '}')
}

// key begins a member of the object that starts there.
func (d *Decoder) key(start int, key []byte) {
	if len(d.out) > start {
		d.out = append(d.out, ',')
	}
	d.out = append(append(d.out, key...), ':')
}

// parts are what the rest has of one value: members in their order, of which some are taken.
type parts struct {
	all   []*part
	named map[string]*part // the last of each name
}

type part struct {
	key   []byte // nil where it is taken
	value scan.Cursor
}

// members are none where there is no rest.
func (d *Decoder) members(left *scan.Cursor) (of parts) {
	if left == nil {
		return of
	}
	if left.Byte() != '{' {
		d.fail("%s has no object where a part of one is", RestName)
		return of
	}
	of.named = map[string]*part{}
	for c := inside(*left); c.Next('}'); c.Skip() {
		one := &part{key: c.Key()}
		one.value = c
		of.all = append(of.all, one)
		of.named[string(scan.Text(one.key))] = one
	}
	return of
}

// take is what there is of a name, once.
func (p *parts) take(name string) *scan.Cursor {
	one := p.named[name]
	if one == nil {
		return nil
	}
	delete(p.named, name)
	one.key = nil
	return &one.value
}
