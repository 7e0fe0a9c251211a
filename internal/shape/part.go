package shape

import (
	"fmt"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/scan"
	"github.com/kubecdc/kubecdc/internal/transform"
)

// Part is the Shape of some of a stream's objects.
type Part struct {
	Takes   func(namespace string) bool
	Matches func(Labels) bool // nil is any labels
	Shape   *Shape            // nil leaves records as they are
}

// Labels is one label of an object, by its key.
type Labels func(key string) (value string, found bool)

// Of is the Shape that gives each record that of the first part which takes its object. The last part takes all that no
// other does.
func Of(parts ...Part) *Shape {
	s := &Shape{parts: parts}
	for i := range parts {
		if made := parts[i].Shape; made != nil && made.rules != nil {
			made.again = made.rules.Again()
		}
	}
	return s
}

// applyPart finds the part of the record's object. An object whose labels nobody knows goes on if it may be of a part
// that lets it.
func (s *Shape) applyPart(rec *change.Record) {
	possible := s.possible(rec.Key.Namespace)
	if rec.Object == nil || rec.Withheld != "" {
		for _, part := range possible {
			if part.Shape == nil || part.Shape.wants(rec) {
				return
			}
		}
		possible[0].Shape.Apply(rec)
		return
	}
	if part := partOf(possible, rec.Object); part.Shape != nil {
		part.Shape.Apply(rec)
		part.Shape.cutBefore(rec)
	}
}

// possible are the parts that the objects of a namespace may be of, at least one.
func (s *Shape) possible(namespace string) (possible []Part) {
	last := len(s.parts) - 1
	for _, part := range s.parts[:last] {
		if part.Takes(namespace) {
			if possible = append(possible, part); part.Matches == nil {
				return possible
			}
		}
	}
	return append(possible, s.parts[last])
}

// partOf is that of the object. What cannot be read has no labels, and goes through rules, which leave its identity
// alone (I9).
func partOf(possible []Part, object []byte) *Part {
	last := &possible[len(possible)-1]
	if len(possible) == 1 {
		return last
	}
	var proof scan.Proof
	proof.Prove(object, "")
	labels := func(key string) (string, bool) {
		token := proof.Find("metadata", "labels", key)
		if len(token) == 0 || token[0] != '"' {
			return "", false
		}
		return string(scan.Text(token)), true
	}
	for i := range possible {
		part := &possible[i]
		if proof.Whole() && (part.Matches == nil || part.Matches(labels)) || !proof.Whole() && part.Shape != nil && part.Shape.rules != nil {
			return part
		}
	}
	return last
}

// cutBefore cuts the object as it was, since it may have been of another part then.
func (s *Shape) cutBefore(rec *change.Record) {
	if rec.Before == nil || s.again == nil {
		return
	}
	cut, err := s.again.Apply(nil, rec.Before, owner(rec))
	if err != nil {
		s.failed(rec, fmt.Errorf("the object as it was: %w", err))
	}
	rec.Before = cut
}

// Entry has rules of some of a stream's objects.
type Entry struct {
	Rules transform.Rules
	For   string                      // tells apart what it is for; "" is everything
	Takes func(namespace string) bool // nil takes all
}
