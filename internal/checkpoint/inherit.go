package checkpoint

import (
	"fmt"
	"slices"

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
	known, err := s.knownStreams()
	if err != nil {
		return nil, err
	}
	for _, name := range known {
		h, overlaps := inheritanceOf(name, stream)
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

// knownStreams are the streams that the state knows anything of, or that a sink is absent from. Of a stream that was to
// be an heir there may be nothing else yet.
func (s *Store) knownStreams() ([]string, error) {
	known, err := s.Streams()
	if err != nil {
		return nil, err
	}
	absences, err := s.Absences()
	for _, a := range absences {
		known = append(known, a.Stream)
	}
	slices.Sort(known)
	return slices.Compact(known), err
}

// inherit moves one inheritance, and says whether there was any. An heir that has no position goes on at that of the
// stream of all, and is given it last. Any other one is found in the middle of a reconcile from the first piece on.
func (s *Store) inherit(h inheritance) (moved bool, err error) {
	_, continues, err := s.Position(h.to)
	if err != nil {
		return false, err
	}
	sinks, err := s.heldSinks()
	if err != nil {
		return false, err
	}
	isPart := h.namespace != ""
	exact := isPart && !continues
	m := mover{database: s.database, inheritance: h}
	if isPart && continues {
		if some, err := m.any(sinks); err != nil || !some {
			return false, err // it took everything in an earlier life
		}
	}
	form, objects := m.form, func() error { return m.objects(sinks) }
	standing := func() error {
		return s.edit(func(w *writer) error { return (&heir{w, h, exact}).standing(sinks) })
	}
	rest := func() error {
		return s.edit(func(w *writer) error { return (&heir{w, h, exact}).leaveNothing(sinks) })
	}
	absences := func() error {
		return s.edit(func(w *writer) error { return (&heir{w, h, exact}).absencesOf(sinks) })
	}
	switch {
	case exact:
		return true, inOrder(form, absences, objects, standing)
	case isPart:
		return true, inOrder(form, standing, objects)
	}
	return true, inOrder(form, standing, objects, rest)
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
