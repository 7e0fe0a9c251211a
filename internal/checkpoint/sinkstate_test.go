package checkpoint

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// rowsInMemory are the plain form of a SinkState: one map, and no table.
type rowsInMemory map[Object]Row

func (m rowsInMemory) Row(of Object) (Row, error) { return m[of], nil }

func (m rowsInMemory) Put(of Object, row Row) error {
	m[of] = row
	return nil
}

func (m rowsInMemory) Passed(resource, namespace string, upTo Point, named func(string) bool) error {
	maps.DeleteFunc(m, func(of Object, row Row) bool {
		mine := of.Key.Namespace == namespace || namespace == Others && !named(of.Key.Namespace)
		return mine && of.Resource == resource && row.Gone && !row.At.After(upTo)
	})
	return nil
}

// history is a sink's life: items with rising versions, and frames among them.
type history struct {
	r       *rand.Rand
	version int
	ids     int
	at      History
}

func (h *history) next() Item {
	h.version += h.r.Intn(2)
	i := Item{Kind: Told, Resource: []string{"pods", "pods.x", "deployments.apps"}[h.r.Intn(3)], Scope: Others, At: h.point(0)}
	if h.r.Intn(3) == 0 {
		i.Scope = Scope(h.namespace())
	}
	switch h.r.Intn(12) {
	case 0:
		h.ids++
		i.Kind, i.Comparison = Begin, Comparison{ID: fmt.Sprintf("%d.%d", h.version, h.ids), Namespace: string(i.Scope), Full: h.r.Intn(2) == 0}
	case 1:
		i.Kind, i.Comparison = End, Comparison{ID: fmt.Sprintf("%d.%d", h.version, h.ids)}
	case 2:
		i.Kind, i.Given = Bookmark, i.At
	case 3:
		if h.r.Intn(8) == 0 {
			h.at++
		}
		fallthrough
	default:
		h.version++
		i.At, i.Given = h.point(0), h.point(-1)
		i.Key = change.Key{Namespace: h.namespace(), Name: string(rune('a' + h.r.Intn(5)))}
		i.UID = []string{"", "odd uid", "8a2b5b0e-2f0f-4c1b-9a53-6c9a2e0d7a11"}[h.r.Intn(3)]
		i.Gone = h.r.Intn(3) == 0
	}
	return i
}

func (h *history) point(more int) Point { return Point{h.at, strconv.Itoa(h.version + more)} }

func (h *history) namespace() string { return []string{"x", "y", "z", "z-z"}[h.r.Intn(4)] }

func clonePlaces(s Saved) Saved {
	all := map[string]Places{}
	for resource, places := range s.Places {
		all[resource] = maps.Clone(places)
	}
	s.Places = all
	return s
}

// compareObjects compares the objects of a namespace that a sink has, from the first and from the second one on.
func compareObjects(t *testing.T, state *SinkState, rows rowsInMemory, resource, namespace string) {
	t.Helper()
	var want []string
	for of, row := range rows {
		if of.Resource == resource && row.Exists() && (namespace == Others || of.Key.Namespace == namespace) {
			want = append(want, of.Key.String())
		}
	}
	slices.Sort(want)
	for behind := range min(2, len(want)+1) {
		after := ""
		if behind > 0 {
			after = want[behind-1]
		}
		var got []string
		for row, err := range state.Objects(resource, namespace, after) {
			must(t, err)
			if row.Row != rows[row.Of] {
				t.Fatalf("object %v has %v, want %v", row.Of, row.Row, rows[row.Of])
			}
			got = append(got, row.Of.Key.String())
		}
		if !slices.Equal(got, want[behind:]) {
			t.Fatalf("objects of %s in %s after %q are %q, want %q", resource, namespace, after, got, want[behind:])
		}
	}
}

// TestRowsOfATurnAreThoseOfEachObject: whichever tables have them, also where a hash names the object, in whatever
// order they are asked for.
func TestRowsOfATurnAreThoseOfEachObject(t *testing.T) {
	s := open(t, t.TempDir())
	state, err := s.LoadSink("out")
	must(t, err)
	h := &history{r: rand.New(rand.NewSource(7)), at: 1}
	known, read := map[Object]bool{}, 0
	for round := range 60 {
		for range 10 {
			item := h.next()
			if item.Kind != Told {
				continue
			}
			known[item.Object()] = true
			if h.r.Intn(6) == 0 {
				item.Key = item.Key.Hashed()
			}
			if round%20 < 5 {
				must(t, state.Acked(&item))
			} else {
				must(t, state.Spooled(&item))
			}
		}
		state.Waits(round%20 >= 5)
		must(t, state.DropPassed())
		must(t, s.SaveSinks([]*SinkState{state}, Spools{}, nil))
		var all []Object
		for of := range known {
			if of.Resource == "pods" {
				all = append(all, of)
			}
		}
		if len(all) == 0 {
			continue
		}
		if round%2 == 0 {
			slices.SortFunc(all, func(a, b Object) int { return strings.Compare(a.Key.String(), b.Key.String()) })
		}
		rows, err := state.SavedRows(all)
		must(t, err)
		for _, of := range all {
			want, err := state.SavedRow(of)
			must(t, err)
			if got, is := rows[of]; !is || got != want {
				t.Fatalf("round %d: %v has %v, %t, want %v", round, of, got, is, want)
			}
			if want.Known() {
				read++
			}
		}
	}
	if read < 100 {
		t.Errorf("%d rows were found, want hundreds", read)
	}
}

// FuzzPlacesReadBack is that a place is read as it was written, and that no bytes make the reader panic.
func FuzzPlacesReadBack(f *testing.F) {
	f.Add(appendPlace(nil, Place{At: Point{1, "12"}, Comparison: Comparison{ID: "12.3", Namespace: "x", Full: true}, Asked: change.Requested}))
	f.Fuzz(func(t *testing.T, value []byte) {
		place, err := parsePlace(value)
		if err != nil {
			return
		}
		if again, err := parsePlace(appendPlace(nil, place)); again != place || err != nil {
			t.Fatalf("place %v is read as %v (%v)", place, again, err)
		}
	})
}
