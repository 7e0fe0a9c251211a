package typed

import "github.com/kubecdc/kubecdc/internal/transform"

// Narrow is the type of objects that went through the rules. What a rule drops is not in it, and what one hashes is a
// string. A value that only some rules hash, or one of many, is JSON text.
//
// A record that becomes another one by where it is gets a name by that.
func (t *Type) Narrow(rules transform.Rules) (*Type, error) {
	if rules.Empty() {
		return t, nil
	}
	root := &node{}
	kept := rules.Keep
	if len(kept) > 0 {
		kept = append(transform.Identity(), kept...)
	}
	for effect, paths := range map[rule][]string{drop: rules.Drop, keep: kept, redact: rules.Redact} {
		if err := root.add(effect, paths); err != nil {
			return nil, err
		}
	}
	n := narrower{root: t, names: Names{}}
	t.claim(n.names, map[*Type]bool{})
	delete(n.names, t.Name)
	return n.value(t, scope{nodes: []*node{root}, kept: len(kept) == 0}, t.Name), nil
}

// claim takes the names of all records.
func (t *Type) claim(names Names, seen map[*Type]bool) {
	if t == nil || seen[t] {
		return
	}
	seen[t] = true
	if t.Kind == Record {
		names[t.Name] = true
	}
	t.Elem.claim(names, seen)
	for i := range t.Fields {
		t.Fields[i].Type.claim(names, seen)
	}
}

// rule is a set of kinds of rules.
type rule uint8

const (
	drop rule = 1 << iota
	keep
	redact
)

// node is a place in the tree of all paths.
type node struct {
	fields  map[string]*node
	element *node // of some element of a list
	any     *node
	ends    rule // of the paths that end here
	leads   bool
}

func (n *node) add(effect rule, paths []string) error {
	for _, path := range paths {
		steps, err := transform.Steps(path)
		if err != nil {
			return err
		}
		at := n
		for _, step := range steps {
			at.leads = true
			at = at.child(step)
		}
		at.ends |= effect
	}
	return nil
}

func (n *node) child(step transform.Step) *node {
	at := &n.element
	switch {
	case step.Any:
		at = &n.any
	case step.Field != "":
		if n.fields == nil {
			n.fields = map[string]*node{}
		}
		if n.fields[step.Field] == nil {
			n.fields[step.Field] = &node{}
		}
		return n.fields[step.Field]
	}
	if *at == nil {
		*at = &node{}
	}
	return *at
}

// scope is what the rules say of a value.
type scope struct {
	nodes  []*node
	kept   bool
	hashed bool
	partly bool // some values here are hashed, or may be
}

// in goes on at the nodes. Where they are of one among many, nothing is dropped for sure, and nothing hashed.
func (s scope) in(nodes ...*node) (inner scope, ends rule) {
	inner = scope{kept: s.kept, hashed: s.hashed, partly: s.partly}
	for _, n := range nodes {
		if n == nil {
			continue
		}
		ends |= n.ends
		if n.leads {
			inner.nodes = append(inner.nodes, n)
		}
	}
	inner.kept = inner.kept || ends&keep != 0
	return inner, ends
}

func (s scope) field(name string) (inner scope, dropped bool) {
	var nodes []*node
	for _, n := range s.nodes {
		nodes = append(nodes, n.fields[name], n.any)
	}
	inner, ends := s.in(nodes...)
	inner.hashed = inner.hashed || ends&redact != 0
	return inner, ends&drop != 0 || !inner.kept && len(inner.nodes) == 0
}

// elements are those of a list or a map.
func (s scope) elements() scope {
	var all, some []*node
	for _, n := range s.nodes {
		all, some = append(all, n.any), append(some, n.element)
		for _, one := range n.fields {
			some = append(some, one)
		}
	}
	inner, ends := s.in(all...)
	inner.hashed = inner.hashed || ends&redact != 0
	part, ends := s.in(some...)
	inner.partly = inner.partly || ends&redact != 0 || redacts(part.nodes)
	inner.kept = inner.kept || part.kept
	return inner
}

// redacts says whether a path of redact goes on from the nodes.
func redacts(nodes []*node) bool {
	for _, n := range nodes {
		next := []*node{n.any, n.element}
		for _, one := range n.fields {
			next = append(next, one)
		}
		for _, one := range next {
			if one != nil && (one.ends&redact != 0 || redacts([]*node{one})) {
				return true
			}
		}
	}
	return false
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
