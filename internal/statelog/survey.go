package statelog

import (
	"slices"
	"time"
)

// Survey finds, in what the log holds from its beginning on, the units that make the newest state. It is pure, and
// keeps a few bytes of each message. The zero value has seen nothing.
type Survey struct {
	best, now run
	slots     uint32 // how many there are
	newest    Identity
	seen      bool
	claimer   chain // who said last that he writes from here on
	claim     said
	claimed   time.Time // when he said it
}

// run is the units of one chain, without a hole, as far as they may count.
type run struct {
	chain  chain
	next   uint64 // the unit to come, or to be completed
	parts  int    // that the unit to come has so far
	whole  bool   // a segment is complete in it
	from   uint64 // the first unit of the newest complete segment
	opened uint64 // the first unit of a segment that is not complete
	open   bool
	live   []placed // parts from the first unit on that may count
	saved  time.Time
	sizes
}

// sizes are the bytes of the newest complete segment, and of what came since.
type sizes struct{ segment, since int }

// placed is where a part of a unit is.
type placed struct {
	unit  uint64
	slot  uint32
	bytes int32
}

// Range is the units that make the newest state.
type Range struct {
	chain    chain
	from, to uint64
	Saved    time.Time // when the newest of what they say was saved
	Of       Identity
	Bytes    int
	Messages int
}

// end is the place of one who has all of it.
func (r *Range) end() []byte { return placeOf(r.chain, r.to+1) }

// add takes the next message of the log.
func (s *Survey) add(p *part) {
	isClaim := p.flags&claims != 0
	if !isClaim || p.of.Instance != "" { // who restores the state does not know yet whose it is
		s.newest, s.seen = p.of, true
	}
	if isClaim {
		s.claimer, s.claim, s.claimed = p.chain, saidBy(p.contents), p.saved
		return
	}
	s.slots = max(s.slots, p.slot+1)
	r := &s.now
	goesOn := p.chain == r.chain && p.unit == r.next
	if goesOn && p.number > 0 && p.number != r.parts {
		r.parts = 0 // what is left of a torn unit, which begins again
		return
	}
	if !goesOn {
		s.leave()
		s.now = run{chain: p.chain, next: p.unit}
		if p.number > 0 {
			s.now.chain = chain{}
			return
		}
	}
	r.add(p)
}

// written is when somebody wrote to the log last.
func (s *Survey) written() time.Time {
	if s.now.saved.After(s.claimed) {
		return s.now.saved
	}
	return s.claimed
}

// leave ends the present run, which counts unless a later one does.
func (s *Survey) leave() {
	if s.now.whole {
		s.best = s.now
	}
}

func (r *run) add(p *part) {
	for p.number == 0 && len(r.live) > 0 && r.live[len(r.live)-1].unit == p.unit { // of a torn one
		r.live = r.live[:len(r.live)-1]
	}
	r.live = append(r.live, placed{p.unit, p.slot, int32(len(p.contents))})
	r.since += len(p.contents)
	if r.parts = p.number + 1; r.parts < p.parts {
		return
	}
	r.next, r.parts, r.saved = p.unit+1, 0, p.saved
	if p.flags&opens != 0 {
		r.open, r.opened = true, p.unit
		if !r.whole {
			r.forget(func(l placed) bool { return l.unit < p.unit })
		}
	}
	if p.flags&closes != 0 && r.open {
		r.whole, r.from, r.open = true, r.opened, false
		r.forget(func(l placed) bool { return l.unit < r.from })
		r.segment, r.since = r.bytes(), 0
	}
	if !r.whole && !r.open {
		r.live = nil
	}
}

func (r *run) forget(which func(placed) bool) { r.live = slices.DeleteFunc(r.live, which) }

func (r *run) bytes() (n int) {
	for _, l := range r.live {
		n += int(l.bytes)
	}
	return n
}

// found is the run that counts.
func (s *Survey) found() *run {
	if s.now.whole || !s.best.whole {
		return &s.now
	}
	return &s.best
}

// Range is the units that make the newest state, false where the log has no state.
func (s *Survey) Range() (Range, bool) {
	r := s.found()
	return Range{chain: r.chain, from: r.from, to: r.next - 1, Saved: r.saved, Of: s.newest, Bytes: r.bytes(), Messages: len(r.live)}, r.whole
}

// end is where a writer goes on that has the newest state, false where nobody can: another chain was begun after it.
func (s *Survey) end() ([]byte, bool) { return placeOf(s.now.chain, s.now.next), s.now.whole }
