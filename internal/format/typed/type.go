package typed

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Difference is a column that two types have not alike.
type Difference struct {
	Path         string // .spec.containers[*].image
	Older, Newer string // what it is in each, "" where one lacks it
}

// Diff is where two types differ, in the order of the older one, and after that what only the newer one has. Of
// records that come at several places, the first place is told.
func Diff(older, newer *Type) (found []Difference) {
	told := map[[2]*Type]bool{}
	var compare func(path string, older, newer *Type)
	compare = func(path string, older, newer *Type) {
		pair := [2]*Type{older, newer}
		switch {
		case told[pair]:
			return
		case older.Kind != newer.Kind:
			found = append(found, Difference{path, older.Kind.String(), newer.Kind.String()})
			return
		case older.Kind == List:
			compare(path+"[*]", older.Elem, newer.Elem)
		case older.Kind == Map:
			compare(path+".*", older.Elem, newer.Elem)
		}
		told[pair] = true
		for i := range older.Fields {
			f := &older.Fields[i]
			if at, has := newer.index[f.JSON]; has {
				compare(path+f.path(), f.Type, newer.Fields[at].Type)
			} else {
				found = append(found, Difference{Path: path + f.path(), Older: f.Type.Kind.String()})
			}
		}
		for i := range newer.Fields {
			f := &newer.Fields[i]
			if _, has := older.index[f.JSON]; !has {
				found = append(found, Difference{Path: path + f.path(), Newer: f.Type.Kind.String()})
			}
		}
	}
	compare("", older, newer)
	return found
}

// path is the field as a path has it: a name, or what is no word in brackets.
func (f *Field) path() string {
	if f.JSON != "" && f.JSON == allowed(f.JSON) {
		return "." + f.JSON
	}
	return fmt.Sprintf("[%s]", ascii(f.key))
}

// String is a word for people.
func (k Kind) String() string {
	return [...]string{"any JSON", "boolean", "integer", "number", "string", "quantity", "int-or-string", "time", "object", "list", "map"}[k]
}

// rest is what the types do not know of one object, as it grows: an object with what is left over, at the paths where
// it was. Objects on the way are begun when something is in them. It only grows, so a copy is what to return to.
type rest struct {
	text []byte
	path []step
	open int // of the path's objects, how many are begun, with the outermost
}

// step is a key, as it is written, or an index.
type step struct {
	key   []byte
	index int
}

func (r *rest) reset() { r.text, r.path, r.open = r.text[:0], r.path[:0], 0 }

func (r *rest) enter(s step) { r.path = append(r.path, s) }

func (r *rest) leave() {
	if r.open > len(r.path) {
		r.text = append(r.text, '}')
		r.open--
	}
	r.path = r.path[:len(r.path)-1]
}

// add puts a value at a step of the present path.
func (r *rest) add(s step, value []byte) {
	if r.open == 0 {
		r.text, r.open = append(r.text, '{'), 1
	}
	for r.open <= len(r.path) {
		r.member(r.path[r.open-1])
		r.text = append(r.text, '{')
		r.open++
	}
	r.member(s)
	r.text = appendValid(r.text, value)
}

func (r *rest) member(s step) {
	if r.text[len(r.text)-1] != '{' {
		r.text = append(r.text, ',')
	}
	if s.key != nil {
		r.text = appendValid(r.text, s.key)
	} else {
		r.text = append(strconv.AppendInt(append(r.text, '"'), int64(s.index), 10), '"')
	}
	r.text = append(r.text, ':')
}

// end is the whole text, nil where nothing is left over.
func (r *rest) end() []byte {
	if r.open == 0 {
		return nil
	}
	r.text = append(r.text, '}')
	return r.text
}

// appendValid appends a text with U+FFFD for each byte that is no UTF-8.
func appendValid(dst, text []byte) []byte {
	if utf8.Valid(text) {
		return append(dst, text...)
	}
	for _, r := range string(text) {
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

// Kind is what a value is.
type Kind uint8

const (
	Text        Kind = iota // any JSON, as text
	Bool                    // true or false
	Long                    // an integer
	Double                  // a number
	String                  // a string
	Quantity                // a string or a number
	IntOrString             // an integer or a string
	Time                    // RFC 3339
	Record                  // an object with fields
	List
	Map // an object whose keys are data
)

// Bounds of a type, whatever a CRD says. What is beyond them is not in the type.
const (
	MaxFields = 10_000 // in all records together
	MaxName   = 256    // bytes of a field's name
	MaxNames  = 256 << 10
	MaxDepth  = 40 // records, lists and maps within each other
)

// Room is for how many fields there is room yet, and for how many bytes of their names.
type Room struct{ Fields, Bytes int }

// Takes says whether there is room for one more, which it has then.
func (r *Room) Takes(name string) bool {
	if r.Fields <= 0 || len(name) > min(MaxName, r.Bytes) {
		return false
	}
	r.Fields--
	r.Bytes -= len(name)
	return true
}

// Type is the type of a value. It does not change once it is used.
type Type struct {
	Kind     Kind
	Digits   int     // of the fraction of a second of a Time
	Name     string  // of a Record, with its namespace: io.k8s.api.core.v1.PodSpec
	Fields   []Field // of a Record
	Elem     *Type   // of a List and a Map
	Nullable bool    // the elements of a List and a Map may be null
	// Rest says that a Record has a rest of its own. The outermost has one in any case, and what is within such a
	// record has none.
	Rest bool

	index map[string]int // of fields, by their names in JSON
}

// Field is one of a record. Each may be missing.
type Field struct {
	JSON string // its name in objects
	Name string // its name in Avro
	Type *Type

	key []byte // as it is written in JSON
}

// RestName is the first field of a record that has a rest: all that the types do not know.
const RestName = "kubecdc_rest"

// NewRecord makes a record, whose fields have their names in JSON only.
func NewRecord(name string, fields []Field) *Type {
	nameBeside(nil, fields)
	return newRecord(name, fields)
}

// newRecord makes a record of fields that have all their names.
func newRecord(name string, fields []Field) *Type {
	t := &Type{Kind: Record, Name: name, Fields: fields, index: make(map[string]int, len(fields))}
	for i := range fields {
		t.index[fields[i].JSON] = i
		fields[i].key = appendString(nil, []byte(fields[i].JSON))
	}
	return t
}

// Columns is the record as a table of a database holds it: what has values within is JSON, as text.
func (t *Type) Columns() *Type {
	fields := slices.Clone(t.Fields)
	for i := range fields {
		if fields[i].Type.holds() {
			fields[i].Type = Of(Text)
		}
	}
	return newRecord(t.Name, fields)
}

// IsFlat says whether no field of the record has values within.
func (t *Type) IsFlat() bool {
	return !slices.ContainsFunc(t.Fields, func(f Field) bool { return f.Type.holds() })
}

// Of is the type of a scalar, or of any JSON.
func Of(kind Kind) *Type { return &Type{Kind: kind} }

// holds says whether values within the value may be in the rest while the value is not.
func (t *Type) holds() bool { return t.Kind >= Record }

// nameBeside gives each field its name in Avro, beside others, which keep theirs. A name that Avro allows stays.
// Another has its characters replaced, and a hash after it where that is another field's name.
func nameBeside(others, fields []Field) {
	taken := map[string]int{RestName: 1}
	for i := range others {
		taken[others[i].Name] += 2 // also for a field that has the name in JSON
	}
	for i := range fields {
		fields[i].Name = allowed(fields[i].JSON)
		taken[fields[i].Name]++
	}
	for i := range fields {
		f := &fields[i]
		if taken[f.Name] == 1 || f.Name == f.JSON && f.Name != RestName && !slices.ContainsFunc(others, func(o Field) bool { return o.Name == f.Name }) {
			continue
		}
		for f.Name = hashed(f.Name, f.JSON); taken[f.Name] > 0; {
			f.Name += "_"
		}
		taken[f.Name]++
	}
}
