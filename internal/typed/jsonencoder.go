package typed

import (
	"strconv"

	"github.com/kubecdc/kubecdc/internal/scan"
)

// JSONEncoder makes JSON that has nothing but what its type says, and the rest beside it: each object of the type fits
// its closed schema. It makes them one after the other in the same memory, and is for one goroutine.
type JSONEncoder struct{ sorter }

// NewJSONEncoder is for objects of the type, a record.
func NewJSONEncoder(t *Type) *JSONEncoder { return &JSONEncoder{newSorter(t)} }

// Append appends the object to dst.
func (e *JSONEncoder) Append(dst, object []byte) ([]byte, error) {
	c, ok := e.begin(object)
	defer e.proof.Forget()
	if !ok {
		return dst, ErrNoObject
	}
	return e.object(dst, e.t, c), nil
}

// object writes an object, with its rest as the last member.
func (e *JSONEncoder) object(dst []byte, t *Type, c scan.Cursor) []byte {
	dst = e.record(dst, t, c)
	if left := e.rest.end(); left != nil {
		dst = dst[:len(dst)-1]
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), RestName...), '"', ':')
		dst = append(append(dst, left...), '}')
	}
	return dst
}

// whole writes an object that has a rest of its own.
func (e *JSONEncoder) whole(dst []byte, t *Type, c scan.Cursor) []byte {
	outer := e.rest
	e.rest = e.spare
	e.rest.reset()
	dst = e.object(dst, t, c)
	e.spare, e.rest = e.rest, outer
	return dst
}

func (e *JSONEncoder) record(dst []byte, t *Type, c scan.Cursor) []byte {
	base := e.look(t, c)
	dst = append(dst, '{')
	start := len(dst)
	for i := range t.Fields {
		f, s := &t.Fields[i], e.slots[base+i]
		switch {
		case s.times != 1:
		case s.at.Byte() == 'n' || f.JSON == RestName:
			e.rest.add(step{key: f.key}, s.at.Skip())
		default:
			dst = e.member(dst, start, f.Type, member{f.key, s.at})
		}
	}
	e.slots = e.slots[:base]
	return append(dst, '}')
}

// member is one of an object.
type member struct {
	key []byte
	at  scan.Cursor
}

// member writes one of an object that begins at start, or puts it into the rest.
func (e *JSONEncoder) member(dst []byte, start int, t *Type, m member) []byte {
	mark, before := len(dst), e.rest.state()
	if mark > start {
		dst = append(dst, ',')
	}
	dst, fits := e.value(append(appendValid(dst, m.key), ':'), t, step{key: m.key}, m.at)
	if !fits {
		e.rest.back(before)
		e.rest.add(step{key: m.key}, m.at.Skip())
		dst = dst[:mark]
	}
	return dst
}

// value writes a value, with what its type lacks of it in the rest. It is not ok where it does not fit.
func (e *JSONEncoder) value(dst []byte, t *Type, at step, c scan.Cursor) (all []byte, ok bool) {
	if !t.holds() {
		raw := c.Skip()
		return appendValid(dst, raw), t.fits(raw)
	}
	bracket := byte('{')
	if t.Kind == List {
		bracket = '['
	}
	switch {
	case c.Byte() != bracket:
		return dst, false
	case t.Rest:
		return e.whole(dst, t, c), true
	}
	e.rest.enter(at)
	switch ok = true; t.Kind {
	case List:
		dst, ok = e.list(dst, t, c)
	case Map:
		dst, ok = e.mapped(dst, t, c)
	default:
		dst = e.record(dst, t, c)
	}
	if ok {
		e.rest.leave()
	}
	return dst, ok
}

// list writes a list, unless an element does not fit.
func (e *JSONEncoder) list(dst []byte, t *Type, c scan.Cursor) (all []byte, ok bool) {
	dst = append(dst, '[')
	c = inside(c)
	for i := 0; c.Next(']'); i++ {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, ok = e.element(dst, t, step{index: i}, c); !ok {
			return dst, false
		}
		c.Skip()
	}
	return append(dst, ']'), true
}

func (e *JSONEncoder) element(dst []byte, t *Type, at step, c scan.Cursor) (all []byte, ok bool) {
	if t.Nullable && c.Byte() == 'n' {
		return append(dst, "null"...), true
	}
	return e.value(dst, t.Elem, at, c)
}

// mapped writes a map. Entries that do not fit and keys that come more than once are in the rest.
func (e *JSONEncoder) mapped(dst []byte, t *Type, c scan.Cursor) (all []byte, ok bool) {
	_, twice := e.count(c)
	dst = append(dst, '{')
	start := len(dst)
	for c = inside(c); c.Next('}'); {
		key, elem := c.Key(), t.Elem
		if t.Nullable && c.Byte() == 'n' {
			elem = Of(Text)
		}
		if e.isTwice(twice, scan.Text(key)) {
			e.rest.add(step{key: key}, c.Skip())
			continue
		}
		dst = e.member(dst, start, elem, member{key, c})
		c.Skip()
	}
	return append(dst, '}'), true
}

// fits says whether a value that has none within is one of the type.
func (t *Type) fits(raw []byte) bool {
	switch t.Kind {
	case Text:
		return true
	case Bool:
		return raw[0] == 't' || raw[0] == 'f'
	case Long:
		_, ok := integer(raw)
		return ok
	case Double:
		return isDouble(raw)
	case String:
		return raw[0] == '"'
	case Quantity:
		return raw[0] == '"' || isDouble(raw)
	case IntOrString:
		_, ok := integer(raw)
		return ok || raw[0] == '"'
	}
	return raw[0] == '"' && isTime(scan.Text(raw), t.Digits)
}

// isDouble says whether a value of JSON is a number that has a float64 near it.
func isDouble(raw []byte) bool {
	if !isNumber(raw) {
		return false
	}
	_, err := strconv.ParseFloat(string(raw), 64)
	return err == nil
}
