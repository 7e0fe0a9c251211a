package listener

import (
	"cmp"
	"maps"
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// Follower knows how far a sink was given each resource: its saved places, and on top of them what is on its way.
type Follower struct {
	places map[string]checkpoint.Places
	ids    IDs
}

// IDs returns the ID of the next comparison, whose list is of the version, as in change.Snapshot, without the suffix.
type IDs func(version string) string

// NewFollower returns a Follower that goes on from what is saved.
func NewFollower(saved *checkpoint.Saved, ids IDs) *Follower {
	f := &Follower{places: map[string]checkpoint.Places{}, ids: ids}
	for resource, places := range saved.Places {
		f.places[resource] = maps.Clone(places)
	}
	return f
}

// Standing is where the server stands.
type Standing struct {
	Now    checkpoint.Point
	Forgot string // it has forgotten what is before this version; "" is nothing, as far as is known
	Stale  bool   // no watch can go on from any position
	// Why, if not "", is why it has forgotten positions, instead of change.Gone.
	Why change.Reason
}

// remembers says whether a watch can go on from the point.
func (s *Standing) remembers(at checkpoint.Point) bool {
	return !s.Stale && at.History == s.Now.History && !at.After(s.Now) && change.CompareVersions(at.Version, s.Forgot) >= 0
}

// Way is what a stream reads: a resource, in one namespace or in all.
type Way struct {
	Resource  string
	Scope     checkpoint.Scope
	Selection string // which of its objects, as source.Selection.String
}

// Begin makes the sink go on with the stream, and returns the frames that it has to be told first.
func (f *Follower) Begin(way Way, server Standing) (frames []checkpoint.Item) {
	places := f.of(way.Resource)
	s := survey(places, way)
	switch {
	case len(s.positions) == 0:
		return f.frame(way, checkpoint.Begin, server.Now, checkpoint.Comparison{Full: s.full, Reason: change.Initial})
	case s.forgotten(server):
		places.Each(way.Scope, func(namespace string, place checkpoint.Place) {
			if place.At.After(server.Now) { // the server stands before the position
				place.At = server.Now
				places[namespace] = place
			}
		})
		frames = f.frame(way, checkpoint.Gap, server.Now, checkpoint.Comparison{Full: s.full, Reason: s.reason(server)})
		if frames[0].From = s.lowest; s.lost {
			frames[0].From = checkpoint.Point{}
		}
		return frames
	case s.lost:
		return f.frame(way, checkpoint.Gap, s.newest, checkpoint.Comparison{Full: s.full, Reason: change.Lost})
	case s.stale && s.lowest == s.highest: // everything was given up to here
		return f.frame(way, checkpoint.Begin, s.highest, checkpoint.Comparison{Full: s.full, Reason: change.Stale})
	case s.stale:
		frames = f.frame(way, checkpoint.Gap, s.highest, checkpoint.Comparison{Full: s.full, Reason: change.Stale})
		frames[0].From = s.lowest
		return frames
	case s.missing || s.torn:
		return f.frame(way, checkpoint.Begin, s.lowest, checkpoint.Comparison{Full: s.full, Reason: change.Initial})
	}
	return f.Due(way)
}

// Left are the places that none of the ways reads any more. If Others of a resource is among them, its other places are
// not.
func (f *Follower) Left(ways []Way) (left []Way) {
	for _, resource := range slices.Sorted(maps.Keys(f.places)) {
		for _, namespace := range slices.Sorted(maps.Keys(f.places[resource])) { // Others is the first
			place := f.places[resource][namespace]
			if place.At.History != 0 && !reads(ways, resource, namespace) && !reads(left, resource, checkpoint.Others) {
				left = append(left, Way{resource, checkpoint.Scope(namespace), place.Selection})
			}
		}
	}
	return left
}

// reads says whether one of the ways is of the namespace of the resource, or of all of them.
func reads(ways []Way, resource, namespace string) bool {
	return slices.ContainsFunc(ways, func(w Way) bool {
		return w.Resource == resource && (w.Scope == checkpoint.Others || string(w.Scope) == namespace)
	})
}

// Leave returns the frames that tell the sink, once, that nobody reads the way any more: a gap, and the begin of a
// comparison, which goes on when somebody reads it again. If a comparison is under way already, the sink knows that
// something is missing.
func (f *Follower) Leave(way Way) (frames []checkpoint.Item) {
	if f.of(way.Resource)[string(way.Scope)].Comparison.UnderWay() {
		return nil
	}
	frames = f.frame(way, checkpoint.Gap, f.From(way), checkpoint.Comparison{Reason: change.Left})
	frames[0].From = frames[0].At
	return frames
}

// Due begins the comparisons that were asked for in the stream, unless one is under way, and returns their frames.
func (f *Follower) Due(way Way) (frames []checkpoint.Item) {
	places, lowest := f.of(way.Resource), f.From(way)
	if lowest.History == 0 || places.Any(way.Scope, func(p checkpoint.Place) bool { return p.Comparison.UnderWay() }) {
		return nil
	}
	asked := map[checkpoint.Scope]change.Reason{}
	places.Each(way.Scope, func(namespace string, place checkpoint.Place) {
		if place.Asked != "" {
			asked[checkpoint.Scope(namespace)] = place.Asked
		}
	})
	for _, scope := range slices.Sorted(maps.Keys(asked)) {
		one := way
		one.Scope = scope
		how := checkpoint.Comparison{Full: asked[scope].Full(), Reason: asked[scope]}
		frames = append(frames, f.frame(one, checkpoint.Begin, lowest, how)...)
	}
	return frames
}

// surveyed is what the places of a stream have in common.
type surveyed struct {
	positions       []checkpoint.Point
	lowest, highest checkpoint.Point // of the positions; for highest, one below what was told counts, too
	newest          checkpoint.Point // of all that was told or passed
	missing         bool             // a namespace has no position
	full, lost      bool             // a comparison under way resends a log that was lost; its gap has not been told
	torn            bool             // a comparison is under way for more or fewer namespaces than the stream has
	stale           bool             // another selection of the resource was given
}

// reason is the reason of the gap of a sink whose position the server has forgotten.
func (s *surveyed) reason(server Standing) change.Reason {
	switch {
	case s.lost:
		return change.Lost
	case s.lowest.History != server.Now.History || server.Now.Compare(s.highest) < 0:
		return change.Epoch
	case server.Stale:
		return change.Stale
	}
	return cmp.Or(server.Why, change.Gone)
}

func (s *surveyed) forgotten(server Standing) bool {
	for _, at := range s.positions {
		if !server.remembers(at) {
			return true
		}
	}
	return false
}

func survey(places checkpoint.Places, way Way) (s surveyed) {
	scope := way.Scope
	compared := map[string]int{} // those of all namespaces, by ID
	found := 0
	places.Each(scope, func(namespace string, place checkpoint.Place) {
		found++
		s.stale = s.stale || place.At.History != 0 && place.Selection != way.Selection
		if c := place.Comparison; c.UnderWay() {
			s.full, s.lost = s.full || c.Full && c.OfLost(), s.lost || c.Lost
			s.torn = s.torn || checkpoint.Scope(c.Namespace) != scope && c.Namespace != namespace
			if c.Namespace == checkpoint.Others {
				compared[c.ID]++
			}
		}
		if place.At.History == 0 {
			s.missing = true
			return
		}
		if len(s.positions) == 0 || s.lowest.After(place.At) {
			s.lowest = place.At
		}
		for _, at := range []checkpoint.Point{place.At, place.High.Below()} {
			if at.After(s.highest) {
				s.highest = at
			}
		}
		for _, at := range []checkpoint.Point{place.At, place.High} {
			if at.After(s.newest) {
				s.newest = at
			}
		}
		s.positions = append(s.positions, place.At)
	})
	_, hasOthers := places[checkpoint.Others]
	s.missing = s.missing || scope == checkpoint.Others && !hasOthers || found == 0
	for _, n := range compared {
		s.torn = s.torn || n != found
	}
	return s
}

// Renew replaces a comparison that is under way, but whose list nobody reads any more, by a new one: the unchanged
// objects that it has sent would get the same ids again.
func (f *Follower) Renew(way Way, c checkpoint.Comparison) []checkpoint.Item {
	way.Scope = checkpoint.Scope(c.Namespace)
	reason := change.Requested
	if c.Reason == change.Resync {
		reason = change.Resync
	}
	return f.frame(way, checkpoint.Begin, f.From(way), checkpoint.Comparison{Full: c.Full, Reason: reason})
}

// frame makes the stream go on from the point, with the comparison, whose ID it makes. The list must be no older than
// anything that the sink was given of the namespaces: an older list would bring back objects whose tombstones are
// dropped.
func (f *Follower) frame(way Way, kind checkpoint.Kind, at checkpoint.Point, c checkpoint.Comparison) []checkpoint.Item {
	places, list := f.of(way.Resource), at
	places.Each(way.Scope, func(_ string, place checkpoint.Place) {
		for _, given := range []checkpoint.Point{place.At, place.High} {
			if given.After(list) {
				list = given
			}
		}
		if place.Comparison.OfLost() {
			c.Reason = change.Lost
		}
	})
	c.ID, c.Namespace = f.ids(list.Version), string(way.Scope)
	switch {
	case c.Full:
		c.ID += checkpoint.FullSuffix
	case c.Reason == change.Left:
		c.ID += checkpoint.LeftSuffix
	}
	begin := checkpoint.Item{
		Kind: checkpoint.Begin, Resource: way.Resource, Scope: way.Scope, At: at, Comparison: c, Selection: &way.Selection,
	}
	places.Begin(&begin)
	if kind != checkpoint.Gap {
		return []checkpoint.Item{begin}
	}
	gap := begin
	gap.Kind = checkpoint.Gap
	return []checkpoint.Item{gap, begin}
}

// From is the position from which a watch of the stream brings everything that the sink lacks.
func (f *Follower) From(way Way) checkpoint.Point {
	return survey(f.of(way.Resource), way).lowest
}

// MayJoin says whether a sink at the position may go on with a watch that has brought a change of that version: the
// sink must have all of it. A sink that may lack changes of a version has its position one below.
func MayJoin(position, brought checkpoint.Point) bool { return !brought.After(position) }

// Passed is the position of the namespace.
func (f *Follower) Passed(resource, namespace string) checkpoint.Point {
	place, _ := f.of(resource).Of(namespace)
	return place.At
}

// Newest returns what a sink was told last of an object, including what is on its way.
type Newest func() (checkpoint.Row, error)

// Offered is what becomes of a change that a watch brings.
type Offered byte

const (
	Skipped  Offered = iota // the sink's position is beyond it
	Moved                   // the sink has it, and the position moves
	Taken                   // it is to be told
	Replaces                // the same, after the delete of another object of the name
)

// Offer decides about a change that the stream's watch brings. It calls newest only if it has to; last is the answer.
// Unless the change is Skipped, its Given becomes one below its version, which other changes may share. A change no
// newer than a told delete is not told: a list lacked the object, and a watch that lost the delete may bring it again.
// If an object returns to the selection unchanged, the list tells of it.
func (f *Follower) Offer(i *checkpoint.Item, way Way, newest Newest) (as Offered, last checkpoint.Row, err error) {
	places := f.of(i.Resource)
	below := i.At.Below()
	place, _ := places.Of(i.Key.Namespace)
	if !i.At.After(place.At) {
		if !below.After(survey(places, way).lowest) {
			return Skipped, last, nil
		}
		places.Give(way.Scope, below)
		i.Given = below
		return Moved, last, nil
	}
	compared := places.Any(way.Scope, func(p checkpoint.Place) bool { return p.Comparison.UnderWay() })
	places.Give(way.Scope, below)
	i.Given, as = below, Taken
	if !i.At.After(place.High) || compared {
		if last, err = newest(); err != nil {
			return Skipped, last, err
		}
		switch {
		case !i.At.After(last.At):
			return Moved, last, nil
		case last.Exists() && last.UID != i.UID:
			as = Replaces
		}
	}
	places.Raise(i)
	return as, last, nil
}

// Tell notes that a comparison tells the sink of the item.
func (f *Follower) Tell(i *checkpoint.Item) { f.of(i.Resource).Raise(i) }

// Bookmark moves the stream on.
func (f *Follower) Bookmark(way Way, to checkpoint.Point) { f.of(way.Resource).Give(way.Scope, to) }

// Ask notes that a comparison is asked for. Its reason says whether it is full.
func (f *Follower) Ask(way Way, reason change.Reason) { Ask(f.of(way.Resource), way.Scope, reason) }

// Ask notes in the places that a comparison of the scope is asked for. It does not replace a full one that is.
func Ask(places checkpoint.Places, scope checkpoint.Scope, reason change.Reason) {
	place, _ := places.Of(string(scope))
	if !place.Asked.Full() {
		place.Asked = reason
	}
	places[string(scope)] = place
}

// Comparisons are the comparisons under way in the stream.
func (f *Follower) Comparisons(way Way) (all []checkpoint.Comparison) {
	seen := map[string]bool{}
	f.of(way.Resource).Each(way.Scope, func(_ string, place checkpoint.Place) {
		if c := place.Comparison; c.UnderWay() && !c.Lost && !seen[c.ID] {
			seen[c.ID] = true
			all = append(all, c)
		}
	})
	return all
}

// Known is how far the sink was given the stream.
func (f *Follower) Known(way Way) Known {
	places := f.of(way.Resource)
	s := survey(places, way)
	known := Known{From: s.lowest, Highest: s.newest}
	for _, place := range places {
		known.History = max(known.History, place.At.History)
	}
	return known
}

// End ends the comparison, whose list is of the version, and returns the item that says so.
func (f *Follower) End(resource string, c checkpoint.Comparison, list checkpoint.Point) checkpoint.Item {
	f.of(resource).End(c.ID, list)
	return checkpoint.Item{Kind: checkpoint.End, Resource: resource, Scope: checkpoint.Scope(c.Namespace), At: list, Comparison: c}
}

// Newest is the highest version that was told of the stream, passed, or listed.
func (f *Follower) Newest(way *Way) checkpoint.Point { return survey(f.of(way.Resource), *way).newest }

func (f *Follower) of(resource string) checkpoint.Places {
	places := f.places[resource]
	if places == nil {
		places = checkpoint.Places{}
		f.places[resource] = places
	}
	return places
}

// Known is what a sink was given of a stream.
type Known struct {
	From    checkpoint.Point   // a watch from here brings everything that it lacks
	Highest checkpoint.Point   // nothing after this was told or passed
	History checkpoint.History // the newest one of which it was given anything of the resource
}
