package listener

import (
	"maps"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Follower is how far a sink was given each resource: its saved places, and on top of them what is on its way.
type Follower struct {
	places map[string]Places
	ids    func() string // of the next comparison
}

// NewFollower is one that goes on from what is saved. ids names each comparison.
func NewFollower(saved *Saved, ids func() string) *Follower {
	f := &Follower{places: map[string]Places{}, ids: ids}
	for resource, places := range saved.Places {
		f.places[resource] = maps.Clone(places)
	}
	return f
}

// Standing is where the server stands.
type Standing struct {
	Now     Point
	Forgot  string // it has forgotten what is before this version; "" is not known to have forgotten anything
	History History
}

// remembers says whether a watch can go on from the point.
func (s *Standing) remembers(at Point) bool {
	return at.History == s.Now.History && !at.After(s.Now) && change.CompareVersions(at.Version, s.Forgot) >= 0
}

// Begin makes the sink go on with the scope of the resource, and returns the frames that it is to be told first.
func (f *Follower) Begin(resource string, scope Scope, server Standing) (frames []Item) {
	places := f.of(resource)
	s := survey(places, scope)
	switch {
	case s.none():
		return f.frame(resource, scope, Begin, server.Now, s.full)
	case s.any(func(p Place) bool { return !server.remembers(p.At) }):
		frames = f.frame(resource, scope, Gap, server.Now, s.full)
		frames[0].From = s.lowest
		if s.lost {
			frames[0].From = Point{}
		}
		if s.lowest.History == server.Now.History { // also where the server stands before the position
			places.each(scope, func(namespace string, place Place) {
				place.At = server.Now
				places[namespace] = place
			})
		}
		return frames
	case s.lost:
		return f.frame(resource, scope, Gap, s.highest, s.full)
	case s.missing || s.torn:
		return f.frame(resource, scope, Begin, s.lowest, s.full)
	}
	return nil
}

// surveyed is what the places of a scope have in common.
type surveyed struct {
	places          []Place
	lowest, highest Point
	missing         bool // a namespace has no position
	full, lost      bool
	torn            bool // a comparison is under way that is of more or of less than what is to be compared
}

func (s *surveyed) none() bool { return len(s.places) == 0 }

func (s *surveyed) any(is func(Place) bool) bool {
	for _, place := range s.places {
		if is(place) {
			return true
		}
	}
	return false
}

func survey(places Places, scope Scope) (s surveyed) {
	compared := map[string]int{} // of all, by ID
	found := 0
	places.each(scope, func(namespace string, place Place) {
		found++
		c := place.Comparison
		if c.UnderWay() {
			s.full, s.lost = s.full || c.Full, s.lost || c.Lost
			s.torn = s.torn || Scope(c.Namespace) != scope && c.Namespace != namespace
			if c.Namespace == Others {
				compared[c.ID]++
			}
		}
		if place.At.History == 0 {
			s.missing = true
			return
		}
		if len(s.places) == 0 || s.lowest.After(place.At) {
			s.lowest = place.At
		}
		if place.At.After(s.highest) {
			s.highest = place.At
		}
		s.places = append(s.places, place)
	})
	_, hasOthers := places[Others]
	s.missing = s.missing || scope == Others && !hasOthers || found == 0
	for _, n := range compared {
		s.torn = s.torn || n != found
	}
	return s
}

// frame makes the scope go on from the point, with a comparison.
func (f *Follower) frame(resource string, scope Scope, kind Kind, at Point, full bool) []Item {
	comparison := Comparison{ID: f.ids(), Full: full, Namespace: string(scope)}
	begin := Item{Kind: Begin, Resource: resource, Scope: scope, At: at, Comparison: comparison}
	f.of(resource).begin(&begin)
	if kind != Gap {
		return []Item{begin}
	}
	gap := begin
	gap.Kind = Gap
	return []Item{gap, begin}
}

// Request begins a full comparison of a namespace, or with Others of all, unless the scope is being compared already or
// is not followed.
func (f *Follower) Request(resource string, scope, of Scope) (frames []Item) {
	s := survey(f.of(resource), scope)
	if s.none() || s.missing || s.any(func(p Place) bool { return p.Comparison.UnderWay() }) {
		return nil
	}
	return f.frame(resource, of, Begin, s.lowest, true)
}

// From is the position from which a watch of the scope gives the sink everything.
func (f *Follower) From(resource string, scope Scope) Point {
	return survey(f.of(resource), scope).lowest
}

// MayJoin says whether a sink at the position may go on with a watch that has brought something of the version: it was
// given all of it. Its own position is one below a version that may have more.
func MayJoin(position, brought Point) bool { return !brought.After(position) }

// Passed is the position of the namespace.
func (f *Follower) Passed(resource, namespace string) Point {
	place, _ := f.of(resource).Of(namespace)
	return place.At
}

// Offered is what becomes of a change that a watch brings.
type Offered byte

const (
	Skipped  Offered = iota // the sink has passed it
	Moved                   // it is known; the position moves
	Taken                   // the sink is to be told
	Replaces                // and before that of the end of another object of the name
)

// Offer decides about a change that a watch of the scope brings. newest is what the sink was told last of its object,
// also by what is on its way. Given is the position once the sink has the change.
func (f *Follower) Offer(i *Item, stream Scope, newest func() (Row, error)) (as Offered, given Point, last Row, err error) {
	places := f.of(i.Resource)
	below := i.At.Below()
	place, _ := places.Of(i.Key.Namespace)
	if !i.At.After(place.At) {
		if s := survey(places, stream); below.After(s.lowest) {
			places.give(stream, below)
			return Moved, below, last, nil
		}
		return Skipped, Point{}, last, nil
	}
	compared := false
	places.each(stream, func(_ string, place Place) { compared = compared || place.Comparison.UnderWay() })
	places.give(stream, below)
	as = Taken
	if !i.At.After(place.High) || compared {
		if last, err = newest(); err != nil {
			return 0, Point{}, last, err
		}
		switch {
		case !i.At.After(last.At):
			return Moved, below, last, nil
		case last.Exists() && last.UID != i.UID:
			as = Replaces
		}
	}
	f.told(i, places)
	return as, below, last, nil
}

// Tell notes that a comparison tells of the object.
func (f *Follower) Tell(i *Item) { f.told(i, f.of(i.Resource)) }

// told raises what was told of the namespace.
func (f *Follower) told(i *Item, places Places) {
	namespace := i.Key.Namespace
	place, found := places[namespace]
	if !found {
		namespace, place = Others, places[Others]
	}
	if i.At.After(place.High) {
		place.High = i.At
		places[namespace] = place
	}
}

// Bookmark moves the scope on.
func (f *Follower) Bookmark(resource string, scope Scope, to Point) { f.of(resource).give(scope, to) }

// Comparisons are those under way in the scope.
func (f *Follower) Comparisons(resource string, scope Scope) (all []Comparison) {
	seen := map[string]bool{}
	f.of(resource).each(scope, func(_ string, place Place) {
		if c := place.Comparison; c.UnderWay() && !c.Lost && !seen[c.ID] {
			seen[c.ID] = true
			all = append(all, c)
		}
	})
	return all
}

// End takes the comparison off.
func (f *Follower) End(resource string, c Comparison) Item {
	f.of(resource).end(c.ID)
	return Item{Kind: End, Resource: resource, Scope: Scope(c.Namespace), Comparison: c}
}

func (f *Follower) of(resource string) Places {
	places := f.places[resource]
	if places == nil {
		places = Places{}
		f.places[resource] = places
	}
	return places
}
