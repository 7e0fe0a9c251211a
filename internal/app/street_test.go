package app

import (
	"os"
	"testing"
)

// street is a server with three exporters: two of one cluster, and one of another.
type street struct {
	t          *testing.T
	neighbours []*neighbour
}

// newStreet has exporters whose sinks are not configured; same says that both clusters have one name.
func newStreet(t *testing.T, same bool) street {
	s := street{t: t}
	for _, n := range []*neighbour{{name: "a1", cluster: "kubernetes", uid: "aaaaaaaa-1"}, {name: "b", cluster: "kubernetes", uid: "bbbbbbbb-2"}, {name: "a2", cluster: "kubernetes", uid: "aaaaaaaa-1"}} {
		if !same && n.name == "b" {
			n.cluster = "other"
		}
		n.t, n.dir = t, t.TempDir()
		s.neighbours = append(s.neighbours, n)
	}
	return s
}

// crash puts all states back to how they were before use, as if none was saved meanwhile.
func (s *street) crash(use func()) {
	before := map[*neighbour]string{}
	for _, n := range s.neighbours {
		before[n] = s.t.TempDir() + "/state"
		if err := os.CopyFS(before[n], os.DirFS(n.dir)); err != nil {
			s.t.Fatal(err)
		}
	}
	use()
	for _, n := range s.neighbours {
		n.dir = before[n]
	}
}

// each lets them live one after the other.
func (s *street) each() {
	for _, n := range s.neighbours {
		n.live()
	}
}

// together lets them live at once.
func (s *street) together() {
	done := make(chan struct{})
	for _, n := range s.neighbours {
		go func() {
			defer func() { done <- struct{}{} }()
			n.live()
		}()
	}
	for range s.neighbours {
		<-done
	}
}
