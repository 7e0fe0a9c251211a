package typed

import "fmt"

// Difference is a column that two types have not alike.
type Difference struct {
	Path         string // .spec.containers[*].image
	Older, Newer string // what it is in each, "" where one lacks it
}

// Diff is where two types differ, in the order of the older one, and after that what only the newer one has. Of
// records that come at several places, the first place is told.
func Diff(older, newer *Type) []Difference {
	d := differ{told: map[[2]*Type]bool{}}
	d.compare("", older, newer)
	return d.found
}

type differ struct {
	found []Difference
	told  map[[2]*Type]bool
}

func (d *differ) compare(path string, older, newer *Type) {
	pair := [2]*Type{older, newer}
	switch {
	case d.told[pair]:
		return
	case older.Kind != newer.Kind:
		d.found = append(d.found, Difference{path, older.Kind.String(), newer.Kind.String()})
		return
	case !older.holds():
		return
	}
	d.told[pair] = true
	switch older.Kind {
	case List:
		d.compare(path+"[*]", older.Elem, newer.Elem)
	case Map:
		d.compare(path+".*", older.Elem, newer.Elem)
	default:
		d.fields(path, older, newer)
	}
}

func (d *differ) fields(path string, older, newer *Type) {
	for i := range older.Fields {
		f := &older.Fields[i]
		within := path + step{key: f.key}.path(f.JSON)
		if at, has := newer.index[f.JSON]; has {
			d.compare(within, f.Type, newer.Fields[at].Type)
		} else {
			d.found = append(d.found, Difference{Path: within, Older: f.Type.Kind.String()})
		}
	}
	for i := range newer.Fields {
		f := &newer.Fields[i]
		if _, has := older.index[f.JSON]; !has {
			d.found = append(d.found, Difference{Path: path + step{key: f.key}.path(f.JSON), Newer: f.Type.Kind.String()})
		}
	}
}

// path is the step as a path has it: a name, or what is no word in brackets.
func (s step) path(name string) string {
	if name != "" && name == allowed(name) {
		return "." + name
	}
	return fmt.Sprintf("[%s]", ascii(s.key))
}

// String is a word for people.
func (k Kind) String() string {
	return [...]string{"any JSON", "boolean", "integer", "number", "string", "quantity", "int-or-string", "time", "object", "list", "map"}[k]
}
