package transform

// scope is what the rules say of a value.
type scope struct {
	from, to int  // where its nodes are in the rewriter's, whence paths go on
	leads    rule // of these paths
	ends     rule // of the paths that end at the value
	kept     bool // a path of keep ended at it or above, or there is none
	hashed   bool // a path of redact did
	env      bool // there are rules of variables, and the value is a list or map called env, or in such a list
	listed   bool // it is in such a list
	names    bool // a path of fields ended at it or above
}

// looked says whether a rule needs to look into the value.
func (s *scope) looked() bool {
	return !s.kept || s.hashed || s.env || s.names || s.leads&(drop|redact|inside|fields) != 0
}

// left says whether the value is left in, if it is no scalar where a path of keep looks for something within.
func (s *scope) left() bool { return s.ends&drop == 0 && (s.kept || s.leads&keep != 0) }

func (s scope) decided() scope {
	s.kept = s.kept || s.ends&keep != 0
	s.hashed = s.hashed || s.ends&redact != 0
	s.names = s.names || s.ends&fields != 0
	return s
}
