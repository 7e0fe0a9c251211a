package checkpoint

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
)

// ItemOf is what the id of a message says. is is false for one that says nothing about what its sink has: an Actor or
// Resolved record, or the frame of a snapshot of chosen objects.
//
// A gap that names an object is the note of a rejected record: the sink was told as much as it will ever be. The note
// does not say whether that was a delete. So the object counts as one that exists, and the next comparison tells its
// delete.
func ItemOf(id *change.ID) (item Item, is bool) {
	at := Point{HistoryOf(id.Cluster), id.ResourceVersion}
	item = Item{Resource: id.Resource, Scope: Others, At: at, Key: id.Key, UID: id.UID}
	if id.Op == change.Gap && id.Key.Name != "" || id.Op.OfObject() {
		item.Kind, item.Gone = Told, id.Op == change.Deleted
		if id.Op == change.Sync {
			item.Kind, item.Comparison = Sync, comparisonOf(id, Others)
		}
		return item, true
	}
	if id.Key.Namespace != "" {
		item.Scope = Scope(id.Key.Namespace)
	}
	if item.Key, item.UID = (change.Key{}), ""; strings.HasSuffix(id.Snapshot, PartSuffix) {
		return Item{}, false
	}
	switch id.Op {
	case change.Gap:
		item.Kind = Gap
	case change.SnapshotBegin:
		item.Kind = Begin
	case change.SnapshotEnd:
		item.Kind = End
	default:
		return Item{}, false
	}
	item.Comparison = comparisonOf(id, item.Scope)
	return item, true
}

func comparisonOf(id *change.ID, scope Scope) Comparison {
	c := Comparison{ID: id.Snapshot, Full: strings.HasSuffix(id.Snapshot, FullSuffix), Namespace: string(scope)}
	if strings.HasSuffix(id.Snapshot, LeftSuffix) {
		c.Reason = change.Left
	}
	return c
}

// History is one history of the cluster: when it was found, in milliseconds since 1970, and 1 for the first. So the
// numbers have the order of the histories, even if a log has one that the state does not know yet. 0 is none.
type History uint64

// HistoryOf is the history of an epoch, as change.NewEpoch names it, or of the Cluster of an id.
func HistoryOf(epoch string) History {
	if found := change.EpochFound(epoch); !found.IsZero() {
		return History(found.UnixMilli())
	}
	return 1
}

// Point is a version within a history. The zero value is before everything.
type Point struct {
	History History `cbor:"1,keyasint,omitzero"`
	Version string  `cbor:"2,keyasint,omitzero"` // a resourceVersion (KEP-5504); "" is before all
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

// Below is the point directly before p: a watch from there sees everything at p again.
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
	Gone bool // the sink was told that the object is gone: a tombstone
}

// Known says whether the sink was told of the object.
func (r Row) Known() bool { return r.At.History != 0 }

// Exists says whether the sink has the object.
func (r Row) Exists() bool { return r.Known() && !r.Gone }

// Rows keep the rows of one sink.
type Rows interface {
	// Row returns the object's row, the zero value if there is none.
	Row(of Object) (Row, error)
	// Put makes the row the object's; the zero value removes it.
	Put(of Object, row Row) error
	// Passed removes the tombstones of the resource that are not after the point, in the namespace, or with Others in
	// all for which named is false.
	Passed(resource, namespace string, upTo Point, named func(namespace string) bool) error
}

// Others stands for all namespaces of a resource that have no place of their own, and for cluster-scoped resources.
const Others = "*"

// Place is how far a sink was given one namespace of a resource.
type Place struct {
	At         Point      `cbor:"1,keyasint,omitzero"` // everything up to here was given
	High       Point      `cbor:"2,keyasint,omitzero"` // nothing of the namespace was told, or listed, that is after it
	Comparison Comparison `cbor:"3,keyasint,omitzero"` // the newest that was begun
	// Asked is the reason of another comparison that is asked for and was not begun; "" is none.
	Asked change.Reason `cbor:"4,keyasint,omitzero"`
	// Selection says which objects of the namespace were given, as source.Selection.String.
	Selection string `cbor:"5,keyasint,omitzero"`
}

// Comparison is one with a list of the server.
type Comparison struct {
	// ID is that of change.Snapshot. The number after its first dot rises with each comparison of the sink.
	ID   string `cbor:"1,keyasint,omitzero"`
	Over bool   `cbor:"2,keyasint,omitzero"` // it has ended
	Full bool   `cbor:"3,keyasint,omitzero"` // unchanged objects are sent, too
	// Reason is why it was begun; "" if it is known only from the log, whose ids do not say why.
	Reason change.Reason `cbor:"4,keyasint,omitzero"`
	// Namespace is the one that is compared, Others if all are.
	Namespace string `cbor:"5,keyasint,omitzero"`
	// Lost says that the sink's log has lost records, and that the gap has not been told yet.
	Lost bool `cbor:"6,keyasint,omitzero"`
}

// FullSuffix ends the ID of a full snapshot, so that the log alone tells how to go on after a crash.
const FullSuffix = ".full"

// LeftSuffix ends the ID of a comparison of reason change.Left.
const LeftSuffix = ".left"

// PartSuffix ends the ID of a snapshot of chosen objects, which says nothing about others, and of gaps that stand
// alone.
const PartSuffix = ".part"

// UnderWay says whether the comparison has to go on.
func (c Comparison) UnderWay() bool { return c.ID != "" && !c.Over || c.Lost }

// OfLost says whether it is under way because the log has lost records. A comparison that replaces it is so, too.
func (c Comparison) OfLost() bool { return c.Lost || c.UnderWay() && c.Reason == change.Lost }

// IsAsked says whether it is a full one under way that somebody has asked for, and not one after lost records.
func (c Comparison) IsAsked() bool { return c.Full && c.UnderWay() && !c.OfLost() }

// Number is the number in its ID, 0 if there is none.
func (c Comparison) Number() int64 {
	_, after, _ := strings.Cut(c.ID, ".")
	text, _, _ := strings.Cut(after, ".")
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return number
}

// Places are the places of one resource by namespace. Others is for all that are not named.
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

// ScopeOf is the scope of the stream.
func ScopeOf(stream *change.Stream) Scope {
	if stream.Namespace == "" {
		return Others
	}
	return Scope(stream.Namespace)
}

// Each visits the places of the scope. The visit may replace the place.
func (p Places) Each(scope Scope, visit func(namespace string, place Place)) {
	if scope != Others {
		if place, found := p.Of(string(scope)); found {
			visit(string(scope), place)
		}
		return
	}
	if place, found := p[Others]; found && len(p) == 1 { // as a rule, and much cheaper than to go over a map
		visit(Others, place)
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
}

// Item is one thing that a sink is given.
type Item struct {
	Kind     Kind
	Resource string
	Scope    Scope // of a frame, the scope that it is about; else that of the stream
	At       Point // of the object's state, or of a frame; of an End, that of the list
	// Given, if not zero, is up to where the sink has everything in the scope, once it has the item.
	Given Point
	List  Point // of a delete that a comparison found, if not zero: the point of the list that lacks the object

	Key  change.Key // of a Told and a Sync; of the End of a snapshot of chosen objects, its limits
	UID  string
	Gone bool

	Comparison Comparison // of a frame
	From       Point      // of a Gap: up to where the sink had everything
	Selection  *string    // of a Gap and a Begin: from here on, nil if not known; of such an End, the label selector
}

// Kind is what an item is.
type Kind byte

const (
	Told     Kind = iota + 1 // a state of an object, or its delete
	Sync                     // an unchanged object of a full snapshot, or a frame that changes nothing that is saved
	Bookmark                 // only a position: it is never written
	Gap                      // changes may be missing; a Begin follows from the same point
	Begin                    // a comparison begins
	End                      // a comparison is over
	Over                     // the stream is over: the sink knows that nothing of it exists
	Resolved                 // the log is complete up to a version; it changes nothing that is saved
)

// Object is the object that the item is about.
func (i *Item) Object() Object { return Object{i.Resource, i.Key} }

// Apply applies an item that the sink has acknowledged, or whose record goes to disk. Items come in the order of the
// queue, in which an object's newer states follow its older ones.
func (s *Saved) Apply(i *Item, rows Rows) error {
	places := s.of(i.Resource)
	switch i.Kind {
	case Told:
		places.Raise(i)
		if err := rows.Put(i.Object(), Row{At: i.At, UID: i.UID, Gone: i.Gone}); err != nil {
			return err
		}
	case Gap, Begin:
		places.Begin(i)
	case End:
		places.End(i.Comparison.ID, i.At)
		places.endUnbegun(i)
	case Over:
		places.Leave(i.Scope)
		return nil
	}
	if i.Given != (Point{}) {
		places.Give(i.Scope, i.Given)
	}
	return nil
}

// Fold applies an item that the sink's log has after the mark. An item that was applied before changes nothing: what is
// on disk for the sink may be in the log already. An object that leaves the selection and returns has the same version
// all the while, so there the order of the log decides.
//
// An unchanged object was told before, unless its record superseded the one that told it in a coalescing queue.
func (s *Saved) Fold(i *Item, rows Rows) error {
	if i.Kind == Sync {
		told := *i
		told.Kind = Told
		return s.Fold(&told, rows)
	}
	if i.Kind == Told {
		row, err := rows.Row(i.Object())
		if err != nil || !i.At.After(row.At) && !i.Turns(row) {
			return err
		}
	}
	return s.Apply(i, rows)
}

// Turns says whether the object enters or leaves the selection with the item, unchanged since the row.
func (i *Item) Turns(row Row) bool { return i.UID == row.UID && i.Gone != row.Gone && i.At == row.At }

// forgetAsked ends the full comparisons that were asked for, and calls changed with each resource.
func (s *Saved) forgetAsked(changed func(resource string)) {
	for resource, places := range s.Places {
		for namespace, place := range places {
			place.Comparison.Over = place.Comparison.Over || place.Comparison.IsAsked()
			if place.Asked.Full() {
				place.Asked = ""
			}
			places[namespace] = place
		}
		changed(resource)
	}
}

// Any says whether is holds for a place of the scope.
func (p Places) Any(scope Scope, is func(Place) bool) (any bool) {
	p.Each(scope, func(_ string, place Place) { any = any || is(place) })
	return any
}

func (s *Saved) of(resource string) Places {
	if s.Places[resource] == nil {
		s.Places[resource] = Places{}
	}
	return s.Places[resource]
}

// MarkLost notes that the sink's log has lost records: all places are to be compared, after a gap. The caller makes the
// rows those of what the log still has.
//
// If the log cannot be read whole, the rows stay, and all objects are sent again.
func (s *Saved) MarkLost(whole bool) {
	for _, places := range s.Places {
		for namespace, place := range places {
			c := place.Comparison
			place.Comparison = Comparison{ID: c.ID, Over: true, Full: !whole || c.Full && c.UnderWay(), Lost: true}
			if whole {
				place.High = Point{}
			}
			places[namespace] = place
		}
	}
}

// Raise notes the version of a state that is told, or of the list that lacks a deleted object: an older list might have
// it.
func (p Places) Raise(i *Item) {
	namespace := i.Key.Namespace
	place, found := p[namespace]
	if !found {
		namespace, place = Others, p[Others]
	}
	for _, at := range []Point{i.At, i.List} {
		if at.After(place.High) {
			place.High = at
			p[namespace] = place
		}
	}
}

// Begin makes the scope go on from the frame.
func (p Places) Begin(i *Item) {
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
	comparison := i.Comparison
	if comparison.Reason == "" && p.At.History == 0 {
		comparison.Reason = change.Initial
	}
	if i.At.After(p.At) {
		p.At = i.At
	}
	if i.Selection != nil {
		p.Selection = *i.Selection
	}
	if i.Comparison.Number() > p.Comparison.Number() {
		lost, asked := p.Comparison.OfLost(), p.Comparison.IsAsked()
		if asked {
			p.Asked = cmp.Or(p.Comparison.Reason, change.Requested)
		}
		if p.Comparison = comparison; lost {
			p.Comparison.Reason = change.Lost
		}
		if i.Comparison.Full || !p.Asked.Full() {
			p.Asked = ""
		}
	}
	return p
}

// Leave forgets the places of the scope.
func (p Places) Leave(scope Scope) {
	p.Each(scope, func(namespace string, _ Place) { delete(p, namespace) })
}

// End ends the comparison. High becomes the version of the list at least: the sink knows nothing of objects that were
// made and deleted before it.
func (p Places) End(id string, list Point) {
	for namespace, place := range p {
		if place.Comparison.ID == id {
			place.Comparison.Over = true
			p[namespace] = place.above(list)
		}
	}
}

// above is the place with High raised to the point.
func (p Place) above(at Point) Place {
	if at.After(p.High) {
		p.High = at
	}
	return p
}

// endUnbegun notes the end of a comparison whose begin is in another partition of the log, and will be folded later.
func (p Places) endUnbegun(i *Item) {
	if strings.HasSuffix(i.Comparison.ID, PartSuffix) {
		return
	}
	end := func(namespace string, place Place) {
		if i.Comparison.Number() > place.Comparison.Number() {
			place.Comparison = i.Comparison
			place.Comparison.Over = true
			p[namespace] = place.above(i.At)
		}
	}
	if _, found := p.Of(string(i.Scope)); !found {
		end(string(i.Scope), Place{})
	}
	p.Each(i.Scope, end)
}

// Give moves the scope on.
func (p Places) Give(scope Scope, to Point) {
	p.Each(scope, func(namespace string, place Place) {
		if to.After(place.At) {
			place.At = to
			p[namespace] = place
		}
	})
}

// DropPassed drops the tombstones that the resource's positions have passed, and the places that are the same as
// Others. It is called after the items of a save are applied.
func (s *Saved) DropPassed(resource string, rows Rows) error {
	p := s.of(resource)
	named := func(namespace string) bool { _, is := p[namespace]; return is }
	for namespace, place := range p {
		if place.Comparison.UnderWay() {
			continue
		}
		if err := rows.Passed(resource, namespace, place.At, named); err != nil {
			return err
		}
	}
	others := p[Others]
	for namespace, place := range p {
		if namespace == Others || place.Asked != "" || place.At != others.At || place.Selection != others.Selection {
			continue
		}
		if place.Comparison.UnderWay() || others.Comparison.UnderWay() {
			continue
		}
		if place.High.After(others.High) {
			others.High = place.High
			p[Others] = others
		}
		delete(p, namespace)
	}
	return nil
}
