package openapi

import "github.com/kubecdc/kubecdc/internal/typed"

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
	if t.low[name] == t.seen[name] {
		t.close(name)
	}
}

// close ends the circle that begins with the name.
func (t *tarjan) close(name string) {
	number := t.seen[name]
	for {
		last := t.stack[len(t.stack)-1]
		t.stack = t.stack[:len(t.stack)-1]
		t.circle[last] = number
		if last == name {
			return
		}
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
