package listener

import (
	"cmp"
	"maps"
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// Follower is how far a sink was given each resource: its saved places, and on top of them what is on its way.
type Follower struct {
	places map[string]checkpoint.Places
	ids    IDs
}

// IDs names the next comparison, which begins at the version, as change.Snapshot's, but for the suffix of its kind.
type IDs func(version string) string

// NewFollower is one that goes on from what is saved.
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
	Forgot string // it has forgotten what is before this version; "" is not known to have forgotten anything
	Stale  bool   // no watch can go on from any position
	// Why, where not "", is why it has forgotten positions, in place of change.Gone.
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
	Selection string // what of it is chosen, as of source.Selection
}

// Begin makes the sink go on with the stream, and returns the frames that it is to be told first.
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

// Left are the places that none of the ways reads any more. Others stands for all namespaces of its resource.
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

// Leave tells the sink, once, that nobody reads the way any more: after a gap, a comparison is under way there, which
// goes on when somebody does again. Where one is under way already, the sink knows that something is missing.
func (f *Follower) Leave(way Way) (frames []checkpoint.Item) {
	if f.of(way.Resource)[string(way.Scope)].Comparison.UnderWay() {
		return nil
	}
	frames = f.frame(way, checkpoint.Gap, f.From(way), checkpoint.Comparison{Reason: change.Left})
	frames[0].From = frames[0].At
	return frames
}

// Due begins the comparisons of the stream that are asked for, where none is under way.
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
	lowest, highest checkpoint.Point // highest is of what was told, too: a log of several partitions has parts of it
	newest          checkpoint.Point // that was told or passed: what of it a log has lost, only a list tells again
	missing         bool             // a namespace has no position
	full, lost      bool
	torn            bool // a comparison is under way that is of more or of less than what is to be compared
	stale           bool // something else of the resource was given
}

// reason is why there is a gap of a sink whose position the server has forgotten.
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

// Renew begins a comparison anew that is under way, and that nobody reads any more: the IDs of the unchanged objects
// that it has sent must not come again.
func (f *Follower) Renew(way Way, c checkpoint.Comparison) []checkpoint.Item {
	way.Scope = checkpoint.Scope(c.Namespace)
	reason := change.Requested
	if c.Reason == change.Resync {
		reason = change.Resync
	}
	return f.frame(way, checkpoint.Begin, f.From(way), checkpoint.Comparison{Full: c.Full, Reason: reason})
}

// frame makes the stream go on from the point, with the comparison, which has no name yet. What is listed is no older
// than what the sink was given of any namespace: a list that is would bring objects back whose end the sink was told,
// and has forgotten since.
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

// From is the position from which a watch of the stream gives the sink everything.
func (f *Follower) From(way Way) checkpoint.Point {
	return survey(f.of(way.Resource), way).lowest
}

// MayJoin says whether a sink at the position may go on with a watch that has brought something of the version: it was
// given all of it. Its own position is one below a version that may have more.
func MayJoin(position, brought checkpoint.Point) bool { return !brought.After(position) }

// Passed is the position of the namespace.
func (f *Follower) Passed(resource, namespace string) checkpoint.Point {
	place, _ := f.of(resource).Of(namespace)
	return place.At
}

// Newest is what a sink was told last of an object, also by what is on its way.
type Newest func() (checkpoint.Row, error)

// Offered is what becomes of a change that a watch brings.
type Offered byte

const (
	Skipped  Offered = iota // the sink has passed it
	Moved                   // it is known; the position moves
	Taken                   // the sink is to be told
	Replaces                // and before that of the end of another object of the name
)

// Offer decides about a change that the stream's watch brings. newest is what the sink was told last of its object,
// also by what is on its way; last is that, where it was asked for. Given becomes one below the change's version, which
// others may share, unless it is Skipped. What was told to be gone is gone: a list lacked it. A watch that lost its
// delete may bring it again. Of an object that returns to a selection unchanged the list tells.
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

// Tell notes that a comparison tells of the object.
func (f *Follower) Tell(i *checkpoint.Item) { f.of(i.Resource).Raise(i) }

// Bookmark moves the stream on.
func (f *Follower) Bookmark(way Way, to checkpoint.Point) { f.of(way.Resource).Give(way.Scope, to) }

// Ask notes that a comparison is asked for, which is full where the reason is.
func (f *Follower) Ask(way Way, reason change.Reason) { Ask(f.of(way.Resource), way.Scope, reason) }

// Ask notes in the places that a comparison of the scope is asked for. A full one is not given up for another.
func Ask(places checkpoint.Places, scope checkpoint.Scope, reason change.Reason) {
	place, _ := places.Of(string(scope))
	if !place.Asked.Full() {
		place.Asked = reason
	}
	places[string(scope)] = place
}

// Comparisons are those under way in the stream.
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

// End takes the comparison with the list of the version off.
func (f *Follower) End(resource string, c checkpoint.Comparison, list checkpoint.Point) checkpoint.Item {
	f.of(resource).End(c.ID, list)
	return checkpoint.Item{Kind: checkpoint.End, Resource: resource, Scope: checkpoint.Scope(c.Namespace), At: list, Comparison: c}
}

// Newest is the version of what was told last of the stream, passed, or listed.
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
	From    checkpoint.Point   // a watch from here gives it everything
	Highest checkpoint.Point   // nothing that is after this was told or passed
	History checkpoint.History // the newest of the resource
}
