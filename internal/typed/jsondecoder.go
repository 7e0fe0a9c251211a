package typed

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/kubecdc/kubecdc/internal/scan"
)

// JSONDecoder puts objects together again that a JSONEncoder took apart, of one type, one after the other. It is for
// one goroutine.
type JSONDecoder struct {
	restorer
	t     *Type
	proof scan.Proof
}

// NewJSONDecoder is for what a JSONEncoder of the same type wrote.
func NewJSONDecoder(t *Type) *JSONDecoder { return &JSONDecoder{t: t} }

var errNoObject = errors.New("it is no JSON object")

// Append appends the object to dst.
func (d *JSONDecoder) Append(dst, message []byte) ([]byte, error) {
	d.out, d.err = dst, nil
	defer func() { d.out = nil }()
	d.proof.Prove(message, "")
	defer d.proof.Forget()
	if c := d.proof.Cursor(); d.proof.Whole() && c.Byte() == '{' {
		d.whole(d.t, c)
	} else {
		d.err = errNoObject
	}
	if d.err != nil {
		return dst, fmt.Errorf("read an object with its rest: %w", d.err)
	}
	return d.out, nil
}

// whole reads an object that has a rest of its own.
func (d *JSONDecoder) whole(t *Type, c scan.Cursor) {
	if left, found, _ := c.Field(RestName); found {
		d.record(t, c, &left)
		return
	}
	d.record(t, c, nil)
}

// record reads an object, a map's, too, of whose members some and parts of some may be in the rest.
func (d *JSONDecoder) record(t *Type, c scan.Cursor, left *scan.Cursor) {
	parts := d.members(left)
	d.out = append(d.out, '{')
	start := len(d.out)
	for c = inside(c); c.Next('}') && d.err == nil; c.Skip() {
		key := c.Key()
		name := string(scan.Text(key))
		if t.Kind == Record && name == RestName {
			continue
		}
		d.comma(start)
		d.out = append(append(d.out, key...), ':')
		d.value(t.member(name), c, parts.take(name))
	}
	d.others(parts, start)
	d.out = append(d.out, '}')
}

// member is the type of an object's member, nil where it has none.
func (t *Type) member(name string) *Type {
	if t.Kind == Map {
		return t.Elem
	}
	if i, known := t.index[name]; known {
		return t.Fields[i].Type
	}
	return nil
}

// value reads a value, of which something may be in the rest. What is of no type is as it is.
func (d *JSONDecoder) value(t *Type, c scan.Cursor, left *scan.Cursor) {
	switch {
	case t != nil && t.Rest && c.Byte() == '{':
		d.whole(t, c)
	case t != nil && (t.Kind == Record || t.Kind == Map) && c.Byte() == '{':
		d.record(t, c, left)
	case t != nil && t.Kind == List && c.Byte() == '[':
		d.list(t, c, left)
	case left != nil:
		d.fail("%s has a part of what has none", RestName)
	default:
		d.out = append(d.out, c.Skip()...)
	}
}

// list reads a list, whose elements may have something in the rest by their indices.
func (d *JSONDecoder) list(t *Type, c scan.Cursor, left *scan.Cursor) {
	parts := d.members(left)
	d.out = append(d.out, '[')
	c = inside(c)
	for i := 0; c.Next(']') && d.err == nil; i++ {
		if i > 0 {
			d.out = append(d.out, ',')
		}
		d.value(t.Elem, c, parts.take(strconv.Itoa(i)))
		c.Skip()
	}
	d.out = append(d.out, ']')
	if parts.left() > 0 {
		d.fail("%s has elements that are not in their list", RestName)
	}
}
