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
	r := d.read()
	b := builder{
		reading: r, options: o, circles: r.circles(name), made: map[string]*typed.Type{}, names: typed.Names{},
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
	circles map[string]int // of schemas that refer to each other
	made    map[string]*typed.Type
	names   typed.Names
	room    typed.Room
}

// place is where a type is needed.
type place struct {
	component string
	record    string // the name that a record would have here
	depth     int
}

// component is the type of a named schema.
func (b *builder) component(name string, depth int) *typed.Type {
	if made := b.made[name]; made != nil {
		return made
	}
	t := b.of(b.schema(name), place{name, typed.RecordName(name), depth})
	if t.Kind == typed.Time && strings.HasSuffix(name, ".MicroTime") {
		t.Digits = 6
	}
	b.made[name] = t
	return t
}

// of is the type of what a schema describes, any JSON where that is not told or goes too deep.
func (b *builder) of(s *schema, at place) *typed.Type {
	switch {
	case s == nil || at.depth > typed.MaxDepth:
		return typed.Of(typed.Text)
	case s.Ref != "":
		circle, known := b.circles[target(s)]
		if !known || circle == b.circles[at.component] { // it leads around
			return typed.Of(typed.Text)
		}
		return b.component(target(s), at.depth)
	case s.IntOrString:
		return typed.Of(typed.IntOrString)
	case s.Type == "array":
		return b.elements(typed.List, s.Items, at)
	case len(s.Properties) > 0 && (s.Type == "" || s.Type == "object"):
		return b.record(s, at)
	case s.Open || s.Embedded:
		return typed.Of(typed.Text)
	case s.Type == "object":
		return b.elements(typed.Map, s.additional(), at)
	case s.Type == "":
		return b.union(s, at)
	case s.Type == "string" && s.Format == "date-time":
		return typed.Of(typed.Time)
	}
	scalars := map[string]typed.Kind{"boolean": typed.Bool, "integer": typed.Long, "number": typed.Double, "string": typed.String}
	return typed.Of(scalars[s.Type]) // of another word, any JSON
}

// union is the type of what has none of its own: one schema with something beside it, or several of which each may be.
func (b *builder) union(s *schema, at place) *typed.Type {
	if len(s.All) == 1 && len(s.Any)+len(s.One) == 0 {
		return b.of(s.All[0], at)
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
func (b *builder) elements(kind typed.Kind, s *schema, at place) *typed.Type {
	if s == nil {
		return typed.Of(typed.Text)
	}
	at.depth++
	return &typed.Type{Kind: kind, Elem: b.of(s, at), Nullable: s.Nullable}
}

// record has the schema's properties, as many as there may be.
func (b *builder) record(s *schema, at place) *typed.Type {
	name := b.names.Take(at.record)
	var fields []typed.Field
	for _, property := range sortedNames(s.Properties) {
		cut := property == "managedFields" && !b.options.ManagedFields
		if cut || strings.ContainsRune(property, '\ufffd') || !b.room.Takes(property) { // or a name that no object can have
			continue
		}
		within := place{at.component, typed.WithinName(name, property), at.depth + 1}
		fields = append(fields, typed.Field{JSON: property, Type: b.of(s.Properties[property], within)})
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

// circles gives each named schema that one leads to a number, the same for those that refer to each other, and for none
// else (Tarjan, Depth-first search and linear graph algorithms).
func (r *reading) circles(from string) map[string]int {
	t := tarjan{reading: r, seen: map[string]int{}, low: map[string]int{}, circle: map[string]int{}}
	t.visit(from)
	return t.circle
}

type tarjan struct {
	*reading
	seen, low map[string]int // from 1 on
	circle    map[string]int
	stack     []string
}

func (t *tarjan) visit(name string) {
	t.seen[name] = len(t.seen) + 1
	t.low[name] = t.seen[name]
	t.stack = append(t.stack, name)
	refs := map[string]bool{}
	t.refs(t.schema(name), refs, 0)
	for to := range refs {
		if _, known := t.texts[to]; !known {
			continue
		}
		if t.seen[to] == 0 {
			t.visit(to)
		}
		if _, closed := t.circle[to]; !closed {
			t.low[name] = min(t.low[name], t.low[to])
		}
	}
	if t.low[name] == t.seen[name] { // a circle begins with it
		begin := slices.Index(t.stack, name)
		for _, one := range t.stack[begin:] {
			t.circle[one] = t.seen[name]
		}
		t.stack = t.stack[:begin]
	}
}

// refs are the names of all schemas to which one refers, wherever in it, but for what no type reaches.
func (t *tarjan) refs(s *schema, into map[string]bool, depth int) {
	if s == nil || depth > 2*typed.MaxDepth {
		return
	}
	if s.Ref != "" {
		into[target(s)] = true
	}
	for _, some := range [][]*schema{s.All, s.Any, s.One, {s.Items}} {
		for _, one := range some {
			t.refs(one, into, depth+1)
		}
	}
	for _, one := range s.Properties {
		t.refs(one, into, depth+1)
	}
	if len(s.Additional) > 0 {
		t.refs(s.additional(), into, depth+1)
	}
}
