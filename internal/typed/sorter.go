package typed

import (
	"bytes"
	"hash/maphash"
	"slices"

	"github.com/kubecdc/kubecdc/internal/scan"
)

// sorter finds what an object has of each field of its type, and puts what the type lacks into the rest.
type sorter struct {
	t     *Type
	proof scan.Proof
	rest  rest
	spare rest // of an object within
	slots []slot
	seed  maphash.Seed
	keys  []uint64 // of one map, hashed
}

func newSorter(t *Type) sorter { return sorter{t: t, seed: maphash.MakeSeed()} }

// slot is what an object has of one field.
type slot struct {
	at    scan.Cursor
	times uint8 // none, one, or more
}

const more = 2

// begin starts with another object. It is none where ok is false.
func (e *sorter) begin(object []byte) (c scan.Cursor, ok bool) {
	e.rest.reset()
	e.slots = e.slots[:0]
	if e.proof.Prove(object, ""); !e.proof.Whole() {
		return c, false
	}
	c = e.proof.Cursor()
	return c, c.Byte() == '{'
}

// look finds the fields of an object. Its slots begin at base, and whoever asked takes them away.
func (e *sorter) look(t *Type, c scan.Cursor) (base int) {
	base = len(e.slots)
	e.slots = slices.Grow(e.slots, len(t.Fields))[:base+len(t.Fields)]
	clear(e.slots[base:])
	if e.find(t, c, base) {
		e.repeated(t, c, base)
	}
	return base
}

// find looks up an object's members, and says whether a field comes more than once. Other members are in the rest.
func (e *sorter) find(t *Type, c scan.Cursor, base int) (repeated bool) {
	for c = inside(c); c.Next('}'); {
		key := c.Key()
		i, known := t.field(key)
		if !known {
			e.rest.add(step{key: key}, c.Skip())
			continue
		}
		s := &e.slots[base+i]
		if s.times++; s.times > 1 {
			s.times, repeated = more, true
		}
		s.at = c
		c.Skip()
	}
	return repeated
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

// repeated puts fields that come more than once into the rest, each time.
func (e *sorter) repeated(t *Type, c scan.Cursor, base int) {
	for c = inside(c); c.Next('}'); {
		key := c.Key()
		i, known := t.field(key)
		if value := c.Skip(); known && e.slots[base+i].times == more {
			e.rest.add(step{key: key}, value)
		}
	}
}

// count says how many members an object has, and which keys come more than once; nil is none.
func (e *sorter) count(c scan.Cursor) (n int, twice map[uint64]bool) {
	e.keys = e.keys[:0]
	for c = inside(c); c.Next('}'); c.Skip() {
		e.keys = append(e.keys, maphash.Bytes(e.seed, scan.Text(c.Key())))
	}
	slices.Sort(e.keys)
	for i := 1; i < len(e.keys); i++ {
		if e.keys[i] == e.keys[i-1] {
			if twice == nil {
				twice = map[uint64]bool{}
			}
			twice[e.keys[i]] = true
		}
	}
	return len(e.keys), twice
}

// isTwice says whether the key is among those that count found.
func (e *sorter) isTwice(twice map[uint64]bool, key []byte) bool {
	return twice != nil && twice[maphash.Bytes(e.seed, key)]
}

// inside steps into an object or a list.
func inside(c scan.Cursor) scan.Cursor {
	c.Enter()
	return c
}
