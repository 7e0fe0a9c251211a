package checkpoint

import "testing"

// TestI3ALogThatIsNotInOrderIsFoldedAsTheNewest: of an object whose records are in several topics. At one version the
// log's order decides, since an object that leaves the selection and returns to it has the same one.
func TestI3ALogThatIsNotInOrderIsFoldedAsTheNewest(t *testing.T) {
	at := func(version string, uid string, gone bool) Item {
		return Item{Kind: Told, Resource: "pods", Scope: Others, At: Point{1, version}, UID: uid, Gone: gone}
	}
	for name, c := range map[string]struct {
		told []Item
		want Row
	}{
		"newer":          {[]Item{at("9", "a", false), at("10", "a", false)}, Row{Point{1, "10"}, "a", false}},
		"older":          {[]Item{at("10", "a", false), at("9", "a", false)}, Row{Point{1, "10"}, "a", false}},
		"left":           {[]Item{at("10", "a", false), at("10", "a", true)}, Row{Point{1, "10"}, "a", true}},
		"returned":       {[]Item{at("10", "a", true), at("10", "a", false)}, Row{Point{1, "10"}, "a", false}},
		"another object": {[]Item{at("10", "a", true), at("10", "b", false)}, Row{Point{1, "10"}, "a", true}},
	} {
		s, rows := Saved{Places: map[string]Places{}}, rowsInMemory{}
		for i := range c.told {
			must(t, s.Fold(&c.told[i], rows))
		}
		if have := rows[c.told[0].Object()]; have != c.want {
			t.Errorf("%s: the row is %v, want %v", name, have, c.want)
		}
	}
}

// TestI3AnEndThatIsReadBeforeItsBeginEndsIt: they are in different partitions of a topic.
func TestI3AnEndThatIsReadBeforeItsBeginEndsIt(t *testing.T) {
	frames := []Item{
		{Kind: Begin, Resource: "pods", Scope: Others, At: Point{1, "7"}, Comparison: Comparison{ID: "7.2", Namespace: Others}},
		{Kind: End, Resource: "pods", Scope: Others, At: Point{1, "8"}, Comparison: Comparison{ID: "7.2", Namespace: Others}},
	}
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		for _, had := range []Places{{}, {Others: {At: Point{1, "5"}, Comparison: Comparison{ID: "5.1", Namespace: Others}}}} {
			s := Saved{Places: map[string]Places{"pods": had}}
			for _, at := range order {
				must(t, s.Fold(&frames[at], rowsInMemory{}))
			}
			place, _ := s.Places["pods"].Of(Others)
			if place.Comparison.UnderWay() || place.Comparison.ID != "7.2" || place.At != (Point{1, "7"}) {
				t.Errorf("in order %v the place is %+v", order, place)
			}
		}
	}
}

// TestI2ATombstoneOutlivesTheFold: an older state of the object may be read later, from another partition of the log,
// when the end of a whole snapshot has moved the position past the delete.
func TestI2ATombstoneOutlivesTheFold(t *testing.T) {
	s := open(t, t.TempDir())
	state, err := s.LoadSink("lake")
	must(t, err)
	comparison := Comparison{ID: "20.1", Namespace: Others}
	gone, older, at := told("pods", "web", "u", 9), told("pods", "web", "u", 8), Point{1, "20"}
	gone.Gone, gone.Given, older.Given = true, Point{}, Point{}
	for _, piece := range [][]Item{
		{gone, {Kind: Begin, Resource: "pods", Scope: Others, At: at, Comparison: comparison}},
		{{Kind: End, Resource: "pods", Scope: Others, At: at, Comparison: comparison}},
		{older},
	} {
		for i := range piece {
			must(t, state.Found(&piece[i]))
		}
		must(t, s.SaveSinks([]*SinkState{state}, Spools{}, nil))
	}
	if row, err := state.SavedRow(gone.Object()); err != nil || !row.Gone {
		t.Errorf("the row is %v, %v; want the delete", row, err)
	}
	must(t, state.Acked(&Item{Kind: Bookmark, Resource: "pods", Scope: Others, At: at, Given: at}))
	must(t, state.DropPassed())
	must(t, s.SaveSinks([]*SinkState{state}, Spools{}, nil))
	if row, err := state.SavedRow(gone.Object()); err != nil || row.Known() {
		t.Errorf("the row is %v, %v; want none", row, err)
	}
}

// TestI2APlaceOfAnotherSelectionStays: what was given there is not what Others says.
func TestI2APlaceOfAnotherSelectionStays(t *testing.T) {
	same := Place{At: Point{1, "9"}, Selection: "app=web"}
	other := same
	other.Selection = ""
	s := Saved{Places: map[string]Places{"pods": {Others: same, "shop": other, "stock": same}}}
	must(t, s.DropPassed("pods", rowsInMemory{}))
	if have := s.Places["pods"]; len(have) != 2 || have["shop"] != other {
		t.Errorf("the places are %+v, want that of shop beside that of all others", have)
	}
}
