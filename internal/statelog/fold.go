package statelog

import (
	"time"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// fold puts the units of a chain together, in their order, and applies each when it is whole. It is pure, and keeps one
// unit in memory.
type fold struct {
	of     chain
	next   uint64 // the unit to come, or to be completed
	torn   torn
	apply  func(changes checkpoint.Changes, place []byte) error
	before uint64 // units from here on are not applied; 0 is that all are
}

// torn is a unit of which parts are missing.
type torn struct {
	number   int // of the part to come
	parts    int
	saved    time.Time
	contents []byte
}

// add takes the next message of the log.
func (f *fold) add(p *part) error {
	switch {
	case p.flags&claims != 0:
		f.torn.number = 0 // whoever writes from here on begins units anew
		return nil
	case p.chain != f.of || p.unit != f.next || f.before != 0 && p.unit >= f.before || !f.torn.add(p):
		return nil
	}
	changes, err := join(f.torn.contents)
	if err == nil {
		err = f.apply(changes, placeOf(f.of, f.next+1))
	}
	f.next, f.torn.number = f.next+1, 0
	return err
}

// add takes a part of the unit, and says whether that was the last one.
func (t *torn) add(p *part) (whole bool) {
	switch {
	case p.number == 0:
		*t = torn{parts: p.parts, saved: p.saved, contents: t.contents[:0]}
	case p.number < t.number:
		return false // it was read before
	case p.number != t.number || p.parts != t.parts || !p.saved.Equal(t.saved):
		t.number = 0 // what is left of one that was begun and never finished
		return false
	}
	t.contents = append(t.contents, p.contents...)
	t.number++
	return t.number == t.parts
}
