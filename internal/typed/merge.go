package typed

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
		partners: map[*Type][]*Type{}, known: map[*Type]*Type{}, made: map[*Type]*Type{}, names: Names{}, fields: MaxFields,
		bytes: MaxNames,
	}
	m.pair(older, newer)
	older.claim(m.names, map[*Type]bool{})
	m.count(older, map[*Type]bool{})
	merged := m.older(older)
	merged.Rest = older.Rest
	return merged
}

// merger pairs the records that are at the same places.
type merger struct {
	partners      map[*Type][]*Type // of an older record, the newer ones
	known         map[*Type]*Type   // of a newer record, the first older one
	pairs         int
	made          map[*Type]*Type // of records; nil while one is being made
	names         Names
	fields, bytes int // that may come yet
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
	for _, one := range m.partners[older] {
		if one == newer {
			return
		}
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

// count takes the older type's columns from what there may be.
func (m *merger) count(t *Type, seen map[*Type]bool) {
	if t == nil || seen[t] {
		return
	}
	seen[t] = true
	m.count(t.Elem, seen)
	for i := range t.Fields {
		m.fields--
		m.bytes -= len(t.Fields[i].JSON)
		m.count(t.Fields[i].Type, seen)
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
			if _, older := t.index[f.JSON]; older || has[f.JSON] || !m.takes(f.JSON) {
				continue
			}
			has[f.JSON] = true
			added = append(added, Field{JSON: f.JSON, Type: m.newer(f.Type)})
		}
	}
	return added
}

func (m *merger) takes(name string) bool {
	if m.fields <= 0 || len(name) > m.bytes {
		return false
	}
	m.fields--
	m.bytes -= len(name)
	return true
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
		if m.takes(f.JSON) {
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
