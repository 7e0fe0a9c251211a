package checkpoint

import (
	"maps"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestWhatIsGivenIsTakenWhole: rows, tombstones, places and kept objects are as they were, in the other state, and the
// first one has nothing of the resource but what is put aside, also after it was read anew.
func TestWhatIsGivenIsTakenWhole(t *testing.T) {
	s, dir := open(t, t.TempDir()), t.TempDir()
	other := open(t, dir)
	stream := change.Stream{Resource: change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}}
	must(t, s.KnowStreams([]change.Stream{stream}))
	must(t, s.KeepObjects("pods", []byte("form")))
	_, err := s.Met("u")
	must(t, err)
	key := func(name string) change.Key { return change.Key{Namespace: "shop", Name: name} }
	must(t, save(s, "lake", "7",
		Item{Kind: Begin, Resource: "pods", Scope: Others, At: Point{1, "5"}},
		Item{Kind: Told, Resource: "pods", Scope: Others, At: Point{1, "6"}, Key: key("web"), UID: "a"},
		Item{Kind: Told, Resource: "pods", Scope: Others, At: Point{1, "7"}, Key: key("old"), UID: "b", Gone: true},
		Item{Kind: Told, Resource: "nodes", Scope: Others, At: Point{1, "6"}, Key: change.Key{Name: "n"}, UID: "c"},
	))
	must(t, s.SaveSinks(nil, Spools{}, &Keeping{Sinks: []string{"lake"}, Objects: []KeptObject{
		{Stream: "pods", Key: key("web"), Image: change.Image{UID: "a", Version: "6", Object: []byte(`{"a":1}`), Sinks: []string{"lake"}}},
	}}))
	places, err := s.Places()
	must(t, err)
	before := places["lake"]["pods"]
	of, last := Key{"lake", "pods"}, uint64(0)
	for number := uint64(1); number <= 2; number++ { // a second time, and nothing is left
		state, err := s.LoadSink("lake")
		must(t, err)
		must(t, s.Give(state, "pods", Gift{To: 2, Mark: "9"}))
		if row, err := state.SavedRow(Object{"pods", key("web")}); err != nil || row.Known() || state.Mark != "9" || len(state.Places["pods"]) > 0 {
			t.Fatalf("after the gift: %+v, %v, mark %s, %v", row, err, state.Mark, state.Places)
		}
		holding, err := s.Holding()
		must(t, err)
		gift := holding.Gifts[of]
		if holding.Has[of] || !holding.Has[Key{"lake", "nodes"}] || gift.To != 2 || gift.Mark != "9" || gift.Number <= last {
			t.Fatalf("gift %d: %+v", number, holding)
		}
		if last = gift.Number; number == 2 {
			break
		}
		must(t, other.AdoptHistories(s))
		must(t, other.OfTasks())
		must(t, other.BeginTaking("pods"))
		must(t, other.Take(s, Taking{Giver: 1, Of: of, Gift: gift, Mark: "3"}))
		if half, err := other.Holding(); err != nil || !maps.Equal(half.Half, map[string]bool{"pods": true}) {
			t.Errorf("it is not known that pods are being taken: %+v, %v", half, err)
		}
		must(t, other.EndTaking("pods"))
		must(t, s.Take(s, Taking{Giver: 1, Of: of, Gift: gift})) // what is aside stays, for whoever dies on the way
	}
	must(t, other.Close())
	other = open(t, dir)
	state, err := other.LoadSink("lake")
	must(t, err)
	web, err := state.SavedRow(Object{"pods", key("web")})
	must(t, err)
	old, err := state.SavedRow(Object{"pods", key("old")})
	must(t, err)
	if web != (Row{At: Point{1, "6"}, UID: "a"}) || !old.Gone || old.At != (Point{1, "7"}) || !maps.Equal(state.Places["pods"], before) || state.Mark != "3" {
		t.Errorf("taken: %+v, %+v, %+v, mark %s", web, old, state.Places["pods"], state.Mark)
	}
	images, err := other.Images("pods", key("web"))
	must(t, err)
	if len(images) != 1 || string(images[0].Object) != `{"a":1}` {
		t.Errorf("kept: %+v", images)
	}
	holding, err := other.Holding()
	must(t, err)
	if holding.Taken[of][1] == 0 || holding.Half["pods"] || !holding.Has[of] {
		t.Errorf("%+v", holding)
	}
}
