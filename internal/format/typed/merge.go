package typed

import (
	"maps"
	"slices"

	"github.com/kubecdc/kubecdc/internal/shape/transform"
)

// Merge is a type that has the columns of both. Those of the older one stay as they are, with their names and their
// types, whether the newer one has them or not; those that only the newer one has come after them. So each version of
// a schema can be read with every other one: a field that one of them lacks is null. A value of another type than that
// of its column is in the rest.
//
// A record keeps its older name. Where it has become several, it has the columns of all. What would exceed the bounds
// of a type is left out.
func Merge(older, newer *Type) *Type {
	if older == nil {
		return newer
	}
	m := merger{
		partners: map[*Type][]*Type{}, known: map[*Type]*Type{}, made: map[*Type]*Type{}, names: Names{},
		room: Room{MaxFields, MaxNames},
	}
	m.pair(older, newer)
	for t := range older.within(map[*Type]bool{}) {
		m.names[t.Name] = true
		for i := range t.Fields { // of what there may be
			m.room.Fields--
			m.room.Bytes -= len(t.Fields[i].JSON)
		}
	}
	merged := m.older(older)
	merged.Rest = older.Rest
	return merged
}

// merger pairs the records that are at the same places.
type merger struct {
	partners map[*Type][]*Type // of an older record, the newer ones
	known    map[*Type]*Type   // of a newer record, the first older one
	pairs    int
	made     map[*Type]*Type // of records; nil while one is being made
	names    Names
	room     Room
}

// pair notes that a value of the older type may be one of the newer type.
func (m *merger) pair(older, newer *Type) {
	if older.Kind != newer.Kind || !older.holds() {
		return
	}
	if older.Kind != Record {
		m.pair(older.Elem, newer.Elem)
		return
	}
	if slices.Contains(m.partners[older], newer) {
		return
	}
	if m.pairs++; m.pairs > MaxFields {
		return
	}
	m.partners[older] = append(m.partners[older], newer)
	if m.known[newer] == nil {
		m.known[newer] = older
	}
	for i := range older.Fields {
		f := &older.Fields[i]
		if at, has := newer.index[f.JSON]; has {
			m.pair(f.Type, newer.Fields[at].Type)
		}
	}
}

// older is what becomes of an older type.
func (m *merger) older(t *Type) *Type {
	switch {
	case !t.holds():
		return t
	case t.Kind != Record:
		return &Type{Kind: t.Kind, Elem: m.older(t.Elem), Nullable: t.Nullable}
	}
	if made, begun := m.made[t]; begun {
		return made
	}
	m.made[t] = nil
	kept := make([]Field, 0, len(t.Fields))
	for _, f := range t.Fields {
		kept = append(kept, Field{JSON: f.JSON, Name: f.Name, Type: m.older(f.Type)})
	}
	added := m.added(t)
	nameBeside(kept, added)
	made := newRecord(t.Name, append(kept, added...))
	made.Rest = t.Rest
	m.made[t] = made
	return made
}

// added are the columns that come to an older record.
func (m *merger) added(t *Type) (added []Field) {
	has := map[string]bool{}
	for _, newer := range m.partners[t] {
		for _, f := range newer.Fields {
			if _, older := t.index[f.JSON]; older || has[f.JSON] || !m.room.Takes(f.JSON) {
				continue
			}
			has[f.JSON] = true
			added = append(added, Field{JSON: f.JSON, Type: m.newer(f.Type)})
		}
	}
	return added
}

// newer is what becomes of a type that only newer columns have. What would be within itself is JSON text.
func (m *merger) newer(t *Type) *Type {
	switch {
	case !t.holds():
		return t
	case t.Kind != Record:
		return &Type{Kind: t.Kind, Elem: m.newer(t.Elem), Nullable: t.Nullable}
	}
	if older := m.known[t]; older != nil {
		if made, begun := m.made[older]; begun && made == nil {
			return Of(Text)
		}
		return m.older(older)
	}
	if made, begun := m.made[t]; begun {
		return made
	}
	m.made[t] = nil
	var fields []Field
	for _, f := range t.Fields {
		if m.room.Takes(f.JSON) {
			fields = append(fields, Field{JSON: f.JSON, Type: m.newer(f.Type)})
		}
	}
	if len(fields) == 0 {
		m.made[t] = Of(Text) // few readers know records of nothing
		return m.made[t]
	}
	made := NewRecord(m.names.Take(t.Name), fields)
	made.Rest = t.Rest
	m.made[t] = made
	return made
}

// Narrow is the type of objects that went through the rules. What a rule drops is not in it, and what one hashes is a
// string. A value that only some rules hash, or one of many, is JSON text.
//
// A record that becomes another one by where it is gets a name by that.
func (t *Type) Narrow(rules transform.Rules) (*Type, error) {
	if rules.Empty() {
		return t, nil
	}
	rules.Applied, rules.Managed = false, false // they change no type
	root, err := rules.Paths()
	if err != nil {
		return nil, err
	}
	n := narrower{root: t, names: Names{}}
	for one := range t.within(map[*Type]bool{}) {
		n.names[one.Name] = true
	}
	delete(n.names, t.Name)
	return n.value(t, scope{nodes: []*transform.Node{root}, kept: len(rules.Keep) == 0}, t.Name), nil
}

// within adds the records of the type, which it may be itself, to those that are known.
func (t *Type) within(known map[*Type]bool) map[*Type]bool {
	if t.Elem != nil {
		t.Elem.within(known)
	}
	if t.Kind != Record || known[t] {
		return known
	}
	known[t] = true
	for i := range t.Fields {
		t.Fields[i].Type.within(known)
	}
	return known
}

// scope is what the rules say of a value.
type scope struct {
	nodes  []*transform.Node
	kept   bool
	hashed bool
	partly bool // some values here are hashed, or may be
}

// in goes on at the nodes. Where they are of one among many, nothing is dropped for sure, and nothing hashed.
func (s scope) in(nodes ...*transform.Node) (inner scope, ends transform.Rule) {
	inner = scope{kept: s.kept, hashed: s.hashed, partly: s.partly}
	for _, n := range nodes {
		if n == nil {
			continue
		}
		ends |= n.Ends
		if n.Leads != 0 {
			inner.nodes = append(inner.nodes, n)
		}
	}
	inner.kept = inner.kept || ends&transform.Keep != 0
	return inner, ends
}

func (s scope) field(name string) (inner scope, dropped bool) {
	var nodes []*transform.Node
	for _, n := range s.nodes {
		nodes = append(nodes, n.Fields[name], n.Any)
	}
	inner, ends := s.in(nodes...)
	inner.hashed = inner.hashed || ends&transform.Redact != 0
	return inner, ends&transform.Drop != 0 || !inner.kept && len(inner.nodes) == 0
}

// elements are those of a list or a map.
func (s scope) elements() scope {
	var all, some []*transform.Node
	for _, n := range s.nodes {
		all = append(all, n.Any)
		some = slices.AppendSeq(slices.AppendSeq(some, maps.Values(n.Elements)), maps.Values(n.Fields))
	}
	inner, ends := s.in(all...)
	inner.hashed = inner.hashed || ends&transform.Redact != 0
	part, ends := s.in(some...)
	redacts := func(n *transform.Node) bool { return n.Leads&transform.Redact != 0 }
	inner.partly = inner.partly || ends&transform.Redact != 0 || slices.ContainsFunc(part.nodes, redacts)
	inner.kept = inner.kept || part.kept
	return inner
}

type narrower struct {
	root   *Type
	names  Names
	fields int // that were made
}

// value is t where no rule changes it, and nil where nothing is left.
func (n *narrower) value(t *Type, s scope, name string) *Type {
	if len(s.nodes) == 0 && s.kept && !s.hashed && !s.partly {
		return t
	}
	switch {
	case t.Kind == Record:
		return n.record(t, s, name)
	case t.holds():
		elem := n.value(t.Elem, s.elements(), name)
		if elem == nil || elem == t.Elem {
			return t
		}
		return &Type{Kind: t.Kind, Elem: elem, Nullable: t.Nullable}
	case !s.kept && len(s.nodes) == 0:
		return nil
	}
	return t.hidden(s)
}

// hidden is a scalar that is hashed.
func (t *Type) hidden(s scope) *Type {
	textual := t.Kind == Text || t.Kind == String || t.Kind == Quantity || t.Kind == IntOrString
	switch {
	case t.Kind != Text && s.hashed && !s.partly:
		return Of(String)
	case !textual && (s.hashed || s.partly):
		return Of(Text)
	}
	return t
}

func (n *narrower) record(t *Type, s scope, name string) *Type {
	if n.fields > MaxFields {
		return Of(Text)
	}
	var fields []Field
	same := true
	for _, f := range t.Fields {
		inner, dropped := s.field(f.JSON)
		if dropped {
			same = false
			continue
		}
		made := n.value(f.Type, inner, WithinName(name, f.JSON))
		same = same && made == f.Type
		if made != nil {
			fields = append(fields, Field{JSON: f.JSON, Type: made})
		}
	}
	if same {
		return t
	}
	if n.fields += len(fields); t != n.root && (len(fields) == 0 || n.fields > MaxFields) {
		return Of(Text)
	}
	return NewRecord(n.names.Take(name), fields)
}
