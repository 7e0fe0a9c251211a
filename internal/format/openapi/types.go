package openapi

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/format/typed"
)

// Options say what objects have that the exporter cuts by default.
type Options struct {
	ManagedFields bool // metadata.managedFields
}

// Type is the type of the objects of a kind, nil where the document does not know it.
func (d *Document) Type(group, version, kindName string, o Options) *typed.Type {
	name, known := d.kinds[kind{group, version, kindName}]
	if !known {
		return nil
	}
	b := builder{
		reading: d.read(), options: o, made: map[string]*typed.Type{}, names: typed.Names{},
		room: typed.Room{Fields: typed.MaxFields, Bytes: typed.MaxNames},
	}
	if t := b.component(name, 0); t.Kind == typed.Record {
		return t
	}
	return typed.NewRecord(b.names.Take(typed.RecordName(name)), nil)
}

// builder makes the types of one kind.
type builder struct {
	*reading
	options Options
	made    map[string]*typed.Type // any JSON while one is being made
	names   typed.Names
	room    typed.Room
}

// component is the type of a named schema; within itself any JSON.
func (b *builder) component(name string, depth int) *typed.Type {
	if made := b.made[name]; made != nil {
		return made
	}
	b.made[name] = typed.Of(typed.Text)
	t := b.of(b.schema(name), typed.RecordName(name), depth)
	if t.Kind == typed.Time && strings.HasSuffix(name, ".MicroTime") {
		t.Digits = 6
	}
	b.made[name] = t
	return t
}

// of is the type of what a schema describes, any JSON where that is not told or goes too deep. A record would have the
// name here.
func (b *builder) of(s *schema, name string, depth int) *typed.Type {
	switch {
	case s == nil || depth > typed.MaxDepth:
		return typed.Of(typed.Text)
	case s.Ref != "":
		return b.component(target(s), depth)
	case s.IntOrString:
		return typed.Of(typed.IntOrString)
	case s.Type == "array":
		return b.elements(typed.List, s.Items, name, depth)
	case len(s.Properties) > 0 && (s.Type == "" || s.Type == "object"):
		return b.record(s, name, depth)
	case s.Open || s.Embedded:
		return typed.Of(typed.Text)
	case s.Type == "object":
		return b.elements(typed.Map, s.additional(), name, depth)
	case s.Type == "":
		return b.union(s, name, depth)
	case s.Type == "string" && s.Format == "date-time":
		return typed.Of(typed.Time)
	}
	scalars := map[string]typed.Kind{"boolean": typed.Bool, "integer": typed.Long, "number": typed.Double, "string": typed.String}
	return typed.Of(scalars[s.Type]) // of another word, any JSON
}

// union is the type of what has none of its own: one schema with something beside it, or several of which each may be.
func (b *builder) union(s *schema, name string, depth int) *typed.Type {
	if len(s.All) == 1 && len(s.Any)+len(s.One) == 0 {
		return b.of(s.All[0], name, depth)
	}
	var types []string
	for _, one := range append(s.Any[:len(s.Any):len(s.Any)], s.One...) {
		if one != nil {
			types = append(types, one.Type)
		}
	}
	slices.Sort(types)
	switch strings.Join(types, " ") {
	case "integer string":
		return typed.Of(typed.IntOrString)
	case "number string":
		return typed.Of(typed.Quantity)
	}
	return typed.Of(typed.Text)
}

// elements is a list or a map, any JSON where it may hold anything.
func (b *builder) elements(kind typed.Kind, s *schema, name string, depth int) *typed.Type {
	if s == nil {
		return typed.Of(typed.Text)
	}
	return &typed.Type{Kind: kind, Elem: b.of(s, name, depth+1), Nullable: s.Nullable}
}

// record has the schema's properties, as many as there may be.
func (b *builder) record(s *schema, name string, depth int) *typed.Type {
	name = b.names.Take(name)
	var fields []typed.Field
	for _, property := range sortedNames(s.Properties) {
		cut := property == "managedFields" && !b.options.ManagedFields
		if cut || strings.ContainsRune(property, '\ufffd') || !b.room.Takes(property) { // or a name that no object can have
			continue
		}
		of := b.of(s.Properties[property], typed.WithinName(name, property), depth+1)
		fields = append(fields, typed.Field{JSON: property, Type: of})
	}
	if len(fields) == 0 {
		return typed.Of(typed.Text) // few readers know records of nothing
	}
	return typed.NewRecord(name, fields)
}

// sortedNames begins with what every object has.
func sortedNames(properties map[string]*schema) []string {
	common := []string{"metadata", "kind", "apiVersion"}
	return slices.SortedFunc(maps.Keys(properties), func(a, b string) int {
		return cmp.Or(slices.Index(common, b)-slices.Index(common, a), strings.Compare(a, b))
	})
}
