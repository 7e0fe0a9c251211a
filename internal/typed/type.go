package typed

import "slices"

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
	nameFields(fields)
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

// Of is the type of a scalar, or of any JSON.
func Of(kind Kind) *Type { return &Type{Kind: kind} }

// holds says whether values within the value may be in the rest while the value is not.
func (t *Type) holds() bool { return t.Kind >= Record }

// nameFields gives each field its name in Avro. A name that Avro allows stays. Another has its characters replaced, and
// a hash after it where that is another field's name.
func nameFields(fields []Field) { nameBeside(nil, fields) }

// nameBeside is nameFields for fields that come to others, which keep their names.
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
