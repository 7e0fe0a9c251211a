package transform

// scope is what the rules say of a value.
type scope struct {
	from, to int  // where its nodes are in the rewriter's, whence paths go on
	leads    rule // of these paths
	ends     rule // of the paths that end at the value
	kept     bool // a path of keep ended at it or above, or there is none
	hashed   bool // a path of redact did
	env      bool // there are rules of variables, and the value is a list called env, or a variable in one
}

// looked says whether a rule needs to look into the value.
func (s *scope) looked() bool { return !s.kept || s.hashed || s.env || s.leads&(drop|redact) != 0 }

// left says whether the value is left in, if it is no scalar where a path of keep looks for something within.
func (s *scope) left() bool { return s.ends&drop == 0 && (s.kept || s.leads&keep != 0) }

// member is the scope of the value under the key.
func (r *rewriter) member(s scope, key []byte) scope {
	inner := r.within(s)
	inner.env = len(r.env) > 0 && string(key) == envKey
	if s.from == s.to { // no path leads here
		return inner
	}
	for _, n := range r.nodes[s.from:s.to] {
		r.follow(&inner, n.field(key))
		r.follow(&inner, n.any)
	}
	return inner.decided()
}

// item is the scope of the value at the index.
func (r *rewriter) item(s scope, index int) scope {
	inner := r.within(s)
	inner.env = s.env
	if s.from == s.to {
		return inner
	}
	for _, n := range r.nodes[s.from:s.to] {
		r.follow(&inner, n.elements[index])
		r.follow(&inner, n.any)
	}
	return inner.decided()
}

// within has no nodes yet. It takes the place of the nodes of the member before.
func (r *rewriter) within(s scope) scope {
	r.nodes = r.nodes[:s.to]
	return scope{from: s.to, to: s.to, kept: s.kept, hashed: s.hashed}
}

func (r *rewriter) follow(s *scope, n *node) {
	if n == nil {
		return
	}
	s.ends |= n.ends
	if n.leads != 0 {
		r.nodes = append(r.nodes, n)
		s.to, s.leads = s.to+1, s.leads|n.leads
	}
}

func (s scope) decided() scope {
	s.kept = s.kept || s.ends&keep != 0
	s.hashed = s.hashed || s.ends&redact != 0
	return s
}
