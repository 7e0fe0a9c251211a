package checkpoint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Inherit gives the stream what the state knows of other streams of the same resource whose namespaces overlap with it,
// and returns their names. None of them may be read any more. A stream of one namespace takes the objects of that
// namespace from the stream of all, and its position: it goes on there. The stream of all takes everything from those
// of namespaces: it finds itself in the middle of a reconcile, since it has never read the other namespaces.
//
// It moves a million objects in pieces, each one batch. A crash between two pieces loses nothing, whatever is
// configured next: the objects stay with one of the two streams, and whichever goes on without a position of its own
// compares everything.
func (s *Store) Inherit(stream change.Stream) (from []string, err error) {
	known, err := s.Streams()
	if err != nil {
		return nil, err
	}
	for _, name := range known {
		h, overlaps := heritageOf(name, stream)
		if !overlaps {
			continue
		}
		moved, err := s.inherit(h)
		if err != nil {
			return from, fmt.Errorf("give %s what is known of %s: %w", h.to, h.from, err)
		}
		if moved {
			from = append(from, name)
		}
	}
	return from, nil
}

// heritage is what one stream takes from another one.
type heritage struct {
	from, to  string // the streams' names
	namespace string // of the objects; "" is all of them, and nothing is left then
}

// heritageOf says whether the stream of the name is another one that overlaps with the heir.
func heritageOf(name string, heir change.Stream) (heritage, bool) {
	namespace, resource, found := strings.Cut(name, "/")
	if !found {
		namespace, resource = "", name
	}
	if resource != heir.Resource.String() || (namespace == "") == (heir.Namespace == "") {
		return heritage{}, false
	}
	return heritage{from: name, to: heir.String(), namespace: heir.Namespace}, true
}

// inherit moves one heritage, and says whether there was any. An heir that has no position goes on at that of the
// stream of all, and is given it last. Any other one is found in the middle of a reconcile from the first piece on.
func (s *Store) inherit(h heritage) (moved bool, err error) {
	_, continues, err := s.Position(h.to)
	if err != nil {
		return false, err
	}
	isPart := h.namespace != ""
	if isPart && continues {
		if some, err := s.holds(h.objects(inventoryPrefix(h.from))); err != nil || !some {
			return false, err // it took everything in an earlier life
		}
	}
	sinks, err := s.heldSinks()
	if err != nil {
		return false, err
	}
	exact := isPart && !continues
	form := func() error { return s.write(func(w *writer) error { return w.inheritForm(h) }) }
	standing := func() error { return s.write(func(w *writer) error { return w.inherit(h, sinks, exact) }) }
	objects := func() error { return s.moveObjects(h, sinks) }
	rest := func() error { return s.write(func(w *writer) error { return w.leaveNothing(h, sinks) }) }
	switch {
	case exact:
		return true, inOrder(form, objects, standing)
	case isPart:
		return true, inOrder(form, standing, objects)
	}
	return true, inOrder(form, standing, objects, rest)
}

// inOrder takes the steps until one fails.
func inOrder(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// heldSinks are the sinks of which the state has anything that belongs to a stream.
func (s *Store) heldSinks() ([]string, error) {
	sinks, err := s.Sinks()
	if err != nil {
		return nil, err
	}
	absences, err := s.Absences()
	for _, a := range absences {
		sinks = append(sinks, a.Sink)
	}
	slices.Sort(sinks)
	return slices.Compact(sinks), err
}

// inherit writes what the heir has beside its objects.
func (w *writer) inherit(h heritage, sinks []string, exact bool) error {
	w.absentChanged = true
	from, _, err := w.store.Position(h.from)
	if err != nil {
		return err
	}
	position := from
	if !exact {
		own, _, err := w.store.Position(h.to)
		if err != nil {
			return err
		}
		position = older(own, from)
	}
	if position != (change.Position{}) {
		if err := w.batch.Set(positionKey(h.to), appendPosition(nil, position), nil); err != nil {
			return err
		}
	}
	for _, name := range sinks {
		if err := w.inheritSink(h, name, exact); err != nil {
			return err
		}
	}
	return nil
}

// older is the position of a stream whose objects are those of two positions. What is told between the two is told of
// some of the objects only, as in a reconcile.
func older(a, b change.Position) change.Position {
	p := a
	if a == (change.Position{}) || b != (change.Position{}) && change.CompareVersions(b.ResourceVersion, a.ResourceVersion) < 0 {
		p = b
	}
	if p == (change.Position{}) {
		return p
	}
	if p.Selector = change.Interrupted; a.Epoch != b.Epoch && a != (change.Position{}) && b != (change.Position{}) {
		p.Epoch = change.Interrupted
	}
	return p
}

// inheritSink writes what the heir has of one sink: its subscription, what it is owed, its absence, and the positions
// that its log is compared with. An heir that has several heritages has the subscriptions that all of them had.
func (w *writer) inheritSink(h heritage, sinkName string, exact bool) error {
	from, to := Subscription{sinkName, h.from}, Subscription{sinkName, h.to}
	return inOrder(
		func() error { return w.inheritSubscription(from, to, exact) },
		func() error { return w.inheritDebts(from, to, exact) },
		func() error { return w.inheritAbsence(from, to, exact) },
		func() error { return w.inheritReplayBase(from, to, exact) },
	)
}

func (w *writer) inheritSubscription(from, to Subscription, exact bool) error {
	subscriptions, err := w.store.Subscriptions()
	if err != nil {
		return err
	}
	known := false
	for subscription := range subscriptions {
		known = known || subscription.Stream == to.Stream
	}
	switch {
	case subscriptions[from] && (exact || !known):
		return w.batch.Set(subscriptionKey(to), nil, nil)
	case !subscriptions[from] && subscriptions[to]: // it lacks a part of the objects
		return w.batch.Delete(subscriptionKey(to), nil)
	}
	return nil
}

// inheritDebts makes the heir owe what was owed. The snapshot of a part goes on where it was, and that of the whole
// begins anew.
func (w *writer) inheritDebts(from, to Subscription, exact bool) error {
	debts, err := w.store.Debts()
	if err != nil {
		return err
	}
	for _, d := range debts {
		if d.Sink != from.Sink || d.Stream != from.Stream {
			continue
		}
		own, err := w.debt(to.Stream, to.Sink, d.Reason)
		if err != nil {
			return err
		}
		own.owed.Generation = max(own.owed.Generation, d.Generation)
		if own.owed.After = ""; exact {
			own.owed.After = d.After
		}
		own.exists, own.changed = true, true
	}
	return w.settleDebts()
}

// inheritAbsence makes a sink that misses a part of the heir's objects miss the heir, from the oldest version on that
// it may lack anything of.
func (w *writer) inheritAbsence(from, to Subscription, exact bool) error {
	absence, absent, err := w.absence(from)
	if err != nil {
		return err
	}
	own, ownAbsent, err := w.absence(to)
	switch {
	case err != nil || !absent && !ownAbsent:
		return err
	case !exact:
		if !absent || ownAbsent && own.Since.Before(absence.Since) {
			absence.Since = own.Since
		}
		if nothing := (change.Position{}); absent && absence.From == nothing || ownAbsent && own.From == nothing {
			absence.From = nothing // it lacks a part from its beginning on
		} else {
			absence.From = older(own.From, absence.From)
		}
		absence.Returning = (!absent || absence.Returning) && (!ownAbsent || own.Returning)
	}
	absence.Subscription = to
	return w.setAbsence(&absence)
}

// absence is the sink's of the stream. Where there is none, From is all the same how far the sink was given it.
func (w *writer) absence(subscription Subscription) (a Absence, absent bool, err error) {
	value, absent, err := w.store.get(absentKey(subscription))
	switch {
	case err != nil:
		return a, false, err
	case !absent:
		a.From, _, err = w.store.Position(subscription.Stream)
		return a, false, err
	}
	if a, err = parseAbsence(value); err != nil {
		err = w.store.badValue("an absence", err)
	}
	return a, true, err
}

// inheritReplayBase writes the position that the sink's log is compared with, where that is an earlier one.
func (w *writer) inheritReplayBase(from, to Subscription, exact bool) error {
	base, based, err := w.base(from)
	if err != nil {
		return err
	}
	own, ownBased, err := w.base(to)
	switch {
	case err != nil || !based && !ownBased:
		return err
	case exact:
		return w.batch.Set(replayBaseKey(to), appendPosition(nil, base), nil)
	}
	return w.batch.Set(replayBaseKey(to), appendPosition(nil, older(own, base)), nil)
}

// base is the position that the sink's log is compared with, the stream's where there is none of its own.
func (w *writer) base(s Subscription) (position change.Position, based bool, err error) {
	value, based, err := w.store.get(replayBaseKey(s))
	if err != nil {
		return position, false, err
	}
	if !based {
		position, _, err = w.store.Position(s.Stream)
		return position, false, err
	}
	if position, err = parsePosition(value); err != nil {
		err = w.store.badValue("a base of sink "+s.Sink, err)
	}
	return position, true, err
}

// leaveNothing forgets the stream that the heir has taken everything of. What it is of stays, for what is on disk.
func (w *writer) leaveNothing(h heritage, sinks []string) error {
	for _, name := range sinks {
		subscription := Subscription{name, h.from}
		if err := w.subscriptions(&Batch{Left: []Subscription{subscription}}); err != nil {
			return err
		}
		if err := w.batch.Delete(replayBaseKey(subscription), nil); err != nil {
			return err
		}
	}
	return w.drop(h.from)
}
