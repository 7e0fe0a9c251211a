package listener

import (
	"cmp"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
)

// History is the number of one history of the cluster, in the order in which they were found, from 1. A restored etcd
// begins another one. 0 is none.
type History uint32

// Point is a version within a history. The zero value is before everything.
type Point struct {
	History History
	Version string // a resourceVersion (KEP-5504), "" is before all
}

// Compare is negative, zero or positive as p is before, at or after q.
func (p Point) Compare(q Point) int {
	if order := cmp.Compare(p.History, q.History); order != 0 {
		return order
	}
	return change.CompareVersions(p.Version, q.Version)
}

// After says whether p is after q.
func (p Point) After(q Point) bool { return p.Compare(q) > 0 }

// Below is the point directly before p, from which a watch sees everything at p again.
func (p Point) Below() Point { return Point{p.History, change.VersionBelow(p.Version)} }

// Object names an object of the cluster.
type Object struct {
	Resource string // kubectl's form: "pods", "deployments.apps"
	Key      change.Key
}

// Row is what a sink was told last of an object. The zero value is nothing.
type Row struct {
	At   Point
	UID  string
	Gone bool // it was told that the object is gone: a tombstone
}

// Known says whether the sink was told of the object.
func (r Row) Known() bool { return r.At.History != 0 }

// Exists says whether the sink has the object.
func (r Row) Exists() bool { return r.Known() && !r.Gone }

// Rows are what one sink was told of objects, and not what is on its way.
type Rows interface {
	// Row returns the object's row, the zero value where there is none.
	Row(of Object) (Row, error)
	// Put makes the row the object's; the zero value removes it.
	Put(of Object, row Row) error
	// Passed removes the tombstones of the resource that are not after the point, in the namespace, or with Others in
	// all for which keeps is false.
	Passed(resource, namespace string, upTo Point, keeps func(namespace string) bool) error
}

// Others stands for all namespaces of a resource that have no place of their own, and for a resource that has none.
const Others = "*"

// Place is how far a sink was given one namespace of a resource.
type Place struct {
	At         Point      // everything up to here was given
	High       Point      // nothing of the namespace was told that is after it
	Comparison Comparison // the newest that was begun
}

// Comparison is one with a list of the server.
type Comparison struct {
	ID   string // change.Snapshot's: after a dot it has a number that rises with each comparison of the sink
	Over bool   // it has come to its end
	Full bool   // unchanged objects are sent, too
	// Namespace is what it is of, Others where it is of all.
	Namespace string
	// Lost says that the sink's log has lost records, and that the gap was not told yet.
	Lost bool
}

// UnderWay says whether it is to be gone on with.
func (c Comparison) UnderWay() bool { return c.ID != "" && !c.Over || c.Lost }

// follows says whether it was begun after the other one.
func (c Comparison) follows(other Comparison) bool {
	number := func(id string) string { return id[strings.LastIndexByte(id, '.')+1:] }
	return change.CompareVersions(number(c.ID), number(other.ID)) > 0
}

// Places are those of one resource by namespace, where Others is all that are not named.
type Places map[string]Place

// Of is the place of the namespace.
func (p Places) Of(namespace string) (place Place, found bool) {
	if place, found = p[namespace]; !found {
		place, found = p[Others]
	}
	return place, found
}

// Scope is the part of a resource that a stream reads: one namespace, or Others for all of them, named or not.
type Scope string

// ScopeOf is the stream's.
func ScopeOf(stream *change.Stream) Scope {
	if stream.Namespace == "" {
		return Others
	}
	return Scope(stream.Namespace)
}

// each visits the places of the scope. The visit may replace the place.
func (p Places) each(scope Scope, visit func(namespace string, place Place)) {
	if scope != Others {
		if place, found := p.Of(string(scope)); found {
			visit(string(scope), place)
		}
		return
	}
	for namespace, place := range p {
		visit(namespace, place)
	}
}

// Saved is what is saved of one sink, beside its rows.
type Saved struct {
	Mark   string
	Places map[string]Places // by resource
	OnDisk bool              // something waits for the sink on disk: see Spooled
}

// Spooled notes whether something waits for the sink on disk. It is told before the first item that goes there is
// applied, and after the last one was. Tombstones are kept meanwhile: what the log holds may be older than what is on
// disk, and would bring the object back when it is folded.
func (s *Saved) Spooled(is bool, rows Rows) error {
	was := s.OnDisk
	if s.OnDisk = is; is || !was {
		return nil
	}
	for resource, places := range s.Places {
		if err := places.settle(resource, Others, rows); err != nil {
			return err
		}
	}
	return nil
}

// Item is one thing that a sink is given.
type Item struct {
	Kind     Kind
	Resource string
	Scope    Scope // of a frame what it speaks of, else what the stream reads
	At       Point // of the object's state, or of a frame
	// Given, where not zero, is up to where the sink was given everything in the scope, once it has the item.
	Given Point

	Key  change.Key // of a Told and a Sync
	UID  string
	Gone bool

	Comparison Comparison // of a frame
	From       Point      // of a Gap: up to where the sink had everything
}

// Kind is what an item is.
type Kind byte

const (
	Told     Kind = iota + 1 // a state of an object, or its delete
	Sync                     // an unchanged object of a full snapshot
	Bookmark                 // the position alone: it is never written
	Gap                      // changes may be missing; a Begin follows from the same point
	Begin                    // a comparison begins
	End                      // it is over
)

func (i *Item) object() Object { return Object{i.Resource, i.Key} }

// Apply makes an item that the sink has part of what is saved: in the order of the queue where the sink has acknowledged
// it or it went to disk, and in the order of the log where that is folded. An item that is applied again changes
// nothing: what is on disk may be in the log already.
func (s *Saved) Apply(i *Item, rows Rows) error {
	places := s.Places[i.Resource]
	if places == nil {
		places = Places{}
		s.Places[i.Resource] = places
	}
	switch i.Kind {
	case Told:
		if err := s.tell(i, places, rows); err != nil {
			return err
		}
	case Gap, Begin:
		places.begin(i)
	case End:
		places.end(i.Comparison.ID)
	}
	if i.Given != (Point{}) {
		places.give(i.Scope, i.Given)
	}
	if s.OnDisk {
		return nil
	}
	return places.settle(i.Resource, i.Scope, rows)
}

// Recall makes the sink one whose log has lost records: all places are compared, after a gap. The rows are to be those
// of what the log still has.
func (s *Saved) Recall() {
	for _, places := range s.Places {
		for namespace, place := range places {
			c := place.Comparison
			place.High, place.Comparison = Point{}, Comparison{ID: c.ID, Over: true, Full: c.Full && c.UnderWay(), Lost: true}
			places[namespace] = place
		}
	}
}

// tell puts the newer state into the object's row.
func (s *Saved) tell(i *Item, places Places, rows Rows) error {
	row, err := rows.Row(i.object())
	if err != nil {
		return err
	}
	if !i.At.After(row.At) {
		return nil
	}
	if err := rows.Put(i.object(), Row{At: i.At, UID: i.UID, Gone: i.Gone}); err != nil {
		return err
	}
	namespace := i.Key.Namespace
	place, found := places[namespace]
	if !found {
		namespace, place = Others, places[Others]
	}
	if i.At.After(place.High) {
		place.High = i.At
		places[namespace] = place
	}
	return nil
}

// begin makes the scope go on from the frame.
func (p Places) begin(i *Item) {
	if i.Scope != Others {
		place, _ := p.Of(string(i.Scope))
		p[string(i.Scope)] = place.begun(i)
		return
	}
	p[Others] = p[Others].begun(i)
	for namespace, place := range p {
		p[namespace] = place.begun(i)
	}
}

func (p Place) begun(i *Item) Place {
	if i.At.After(p.At) {
		p.At = i.At
	}
	if i.Comparison.follows(p.Comparison) {
		p.Comparison = i.Comparison
	}
	return p
}

// end takes the comparison off.
func (p Places) end(id string) {
	for namespace, place := range p {
		if place.Comparison.ID == id {
			place.Comparison.Over = true
			p[namespace] = place
		}
	}
}

// give moves the scope on.
func (p Places) give(scope Scope, to Point) {
	p.each(scope, func(namespace string, place Place) {
		if to.After(place.At) {
			place.At = to
			p[namespace] = place
		}
	})
}

// settle drops the tombstones that the scope's positions have passed, and the places that say what Others says.
func (p Places) settle(resource string, scope Scope, rows Rows) error {
	var failed error
	p.each(scope, func(namespace string, place Place) {
		if failed != nil || place.Comparison.UnderWay() {
			return
		}
		failed = rows.Passed(resource, namespace, place.At, func(other string) bool {
			_, named := p[other]
			return named
		})
	})
	if scope != Others {
		return failed
	}
	others := p[Others]
	for namespace, place := range p {
		if namespace != Others && !place.Comparison.UnderWay() && !others.Comparison.UnderWay() && !place.At.After(others.At) {
			if place.High.After(others.High) {
				others.High = place.High
				p[Others] = others
			}
			delete(p, namespace)
		}
	}
	return failed
}
