package listener

import (
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

func at(version string) checkpoint.Point { return checkpoint.Point{History: 1, Version: version} }

// reselected is a sink that was given pods up to the position, and told of nothing after high, whose selection changes.
func reselected(position, high string) (f *Follower, way Way, frames []checkpoint.Item) {
	place := checkpoint.Place{At: at(position), High: at(high), Selection: "app=db"}
	saved := &checkpoint.Saved{Places: map[string]checkpoint.Places{"pods": {checkpoint.Others: place}}}
	f = NewFollower(saved, func(version string) string { return version + ".1" })
	way = Way{Resource: "pods", Scope: checkpoint.Others, Selection: "app=web"}
	return f, way, f.Begin(way, Standing{Now: at("900")})
}

// TestI4AnotherSelectionBeginsAboveWhatWasTold: after a crash, a log may have states after the position, but not all.
// What the new selection has among them is not known.
func TestI4AnotherSelectionBeginsAboveWhatWasTold(t *testing.T) {
	f, way, frames := reselected("500", "520")
	if len(frames) != 2 || frames[0].Kind != checkpoint.Gap || frames[0].From != at("500") || frames[0].At != at("519") || frames[1].Kind != checkpoint.Begin {
		t.Errorf("the sink is told %+v", frames)
	}
	if from := f.From(way); from != at("519") {
		t.Errorf("the watch begins at %v", from)
	}
	_, _, frames = reselected("519", "520")
	if len(frames) != 1 || frames[0].Kind != checkpoint.Begin || frames[0].At != at("519") {
		t.Errorf("where everything was told, the sink is told %+v", frames)
	}
}

// TestI4AStateThatWasToldLeavesAnotherSelection, or enters it, with the version that it had then: the list tells, which
// is no older. The watch, which may have lost a delete, does not.
func TestI4AStateThatWasToldLeavesAnotherSelection(t *testing.T) {
	for _, gone := range []bool{false, true} {
		last := checkpoint.Row{At: at("520"), UID: "u", Gone: !gone}
		f, way, frames := reselected("519", "520")
		item := checkpoint.Item{Kind: checkpoint.Told, Resource: "pods", Scope: way.Scope, At: at("520"), Key: change.Key{Namespace: "shop", Name: "web"}, UID: "u", Gone: gone}
		as, _, err := f.Offer(&item, way, func() (checkpoint.Row, error) { return last, nil })
		if err != nil || as != Moved {
			t.Errorf("gone %t, where gone %t was told, is offered as %v, %v", gone, !gone, as, err)
		}
		list, _, _ := strings.Cut(frames[0].Comparison.ID, ".")
		listed := Listed{UID: "u", At: at("520"), List: at(list), Position: f.Passed("pods", "shop")}
		if as := Judge(&listed, last); !gone && as != Changed {
			t.Errorf("what enters is judged as %v", as)
		}
		if as := JudgeMissing(at(list), at(list), at("530"), last); gone && as != Ended {
			t.Errorf("what leaves is settled as %v", as)
		}
	}
}

// TestI3AStateIsNotToldAgainAfterAListLackedIt: a watch whose server loses a delete brings what was before it, also
// while a comparison is under way.
func TestI3AStateIsNotToldAgainAfterAListLackedIt(t *testing.T) {
	place := checkpoint.Place{At: at("7"), High: at("15"), Comparison: checkpoint.Comparison{ID: "15.1.full", Full: true, Namespace: checkpoint.Others}}
	f := NewFollower(&checkpoint.Saved{Places: map[string]checkpoint.Places{"pods": {checkpoint.Others: place}}}, nil)
	way := Way{Resource: "pods", Scope: checkpoint.Others}
	item := checkpoint.Item{Kind: checkpoint.Told, Resource: "pods", Scope: way.Scope, At: at("8"), Key: change.Key{Namespace: "shop", Name: "web"}, UID: "u"}
	as, _, err := f.Offer(&item, way, func() (checkpoint.Row, error) { return checkpoint.Row{At: at("8"), UID: "u", Gone: true}, nil })
	if err != nil || as != Moved {
		t.Errorf("what a list as of 15 lacked is offered as %v, %v", as, err)
	}
}

// TestI4WhatLeavesIsToldOnce, and nothing else moves: what is still read goes on where it was.
func TestI4WhatLeavesIsToldOnce(t *testing.T) {
	pods := func(scope checkpoint.Scope) Way { return Way{Resource: "pods", Scope: scope} }
	for _, c := range []struct {
		what   string
		given  checkpoint.Places
		ways   []Way
		frames []checkpoint.Item // their Kind, Scope and At
		begins int               // frames of a stream of shop, then
	}{
		{"nothing leaves", checkpoint.Places{"*": {At: at("7")}}, []Way{pods("*")}, nil, 0},
		{"a namespace of all", checkpoint.Places{"*": {At: at("7")}, "shop": {At: at("5")}}, []Way{pods("*")}, nil, 0},
		{"the resource", checkpoint.Places{"*": {At: at("7")}, "shop": {At: at("5")}}, nil, []checkpoint.Item{{Scope: "*", At: at("5")}}, 1},
		{"a namespace", checkpoint.Places{"shop": {At: at("5")}, "web": {At: at("7")}}, []Way{pods("shop")}, []checkpoint.Item{{Scope: "web", At: at("7")}}, 0},
		{"all but one", checkpoint.Places{"*": {At: at("7")}}, []Way{pods("shop")}, []checkpoint.Item{{Scope: "*", At: at("7")}}, 1},
		{"what was never given", checkpoint.Places{"*": {}}, nil, nil, 1},
	} {
		number := 0
		f := NewFollower(&checkpoint.Saved{Places: map[string]checkpoint.Places{"pods": c.given}}, func(version string) string {
			number++
			return version + "." + strconv.Itoa(number)
		})
		before := f.From(pods("shop"))
		var told []checkpoint.Item
		for range 2 {
			for _, way := range f.Left(c.ways) {
				frames := f.Leave(way)
				if len(frames) > 0 && (len(frames) != 2 || frames[0].From != frames[0].At || frames[1].Comparison.Reason != change.Left) {
					t.Errorf("%s: the sink is told %+v", c.what, frames)
				}
				for _, frame := range frames[:min(1, len(frames))] {
					told = append(told, checkpoint.Item{Scope: frame.Scope, At: frame.At})
				}
			}
		}
		if !reflect.DeepEqual(told, c.frames) {
			t.Errorf("%s: the sink is told of %+v, want %+v", c.what, told, c.frames)
		}
		if from := f.From(pods("shop")); from != before {
			t.Errorf("%s: shop goes on at %v, and stood at %v", c.what, from, before)
		}
		if frames := f.Begin(pods("shop"), Standing{Now: at("9")}); len(frames) != c.begins {
			t.Errorf("%s: shop begins with %+v", c.what, frames)
		}
	}
}

// TestI4AListSaysNothingOfWhatWasGoneBeforeIt: nothing below its version is complete, whether the end of the comparison
// is known from the queue, from what is saved, or from the log.
func TestI4AListSaysNothingOfWhatWasGoneBeforeIt(t *testing.T) {
	way := Way{Resource: "pods", Scope: checkpoint.Others}
	c := checkpoint.Comparison{ID: "10.1", Namespace: checkpoint.Others}
	begun := func() *checkpoint.Saved {
		return &checkpoint.Saved{Places: map[string]checkpoint.Places{"pods": {checkpoint.Others: {At: at("10"), Comparison: c}}}}
	}
	f := NewFollower(begun(), nil)
	end := f.End("pods", c, at("38"))
	id, err := change.ParseID("c0000001/pods////38/snapshot.end/10.1")
	if err != nil {
		t.Fatal(err)
	}
	logged, _ := checkpoint.ItemOf(&id)
	logged.Comparison.Namespace = c.Namespace
	for what, item := range map[string]*checkpoint.Item{"is saved": &end, "is in the log": &logged} {
		saved := begun()
		if err := saved.Apply(item, nil); err != nil {
			t.Fatal(err)
		}
		if got := NewFollower(saved, nil).Newest(&way); got != at("38") {
			t.Errorf("where the end %s, all is told as far as %v", what, got)
		}
	}
	if got := f.Newest(&way); got != at("38") {
		t.Errorf("all is told as far as %v", got)
	}
}
