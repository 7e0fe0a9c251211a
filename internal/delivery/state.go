package delivery

// state is where a sink is in its life. It is pure; intake.mu guards it.
//
//	state    the sink                                            entered                    left
//	opening  is being opened, or waits for another attempt       start, comeBack            join
//	joined   is open at its mark, and was given what it is owed  join                       comeBack
//	halted   failed for good: a person must mend it              Halt                       goOn, rejoin
//	leaving  is halted, and others wait for it                   burden                     left: the committer has saved it
//	away     is absent from all its streams: nobody waits        left, or miss at the start rejoin
//	partly   is opening, and absent from some of its streams     miss at the start          rejoin
//
// A sink is opening or joined. The other four come on top: a halted sink may be either, and what is away is halted or
// opening until it rejoins.
type state struct {
	joined, halted, leaving, away, partly bool
}

// miss notes what the sink misses when the run begins: all its streams, or some.
func (s *state) miss(all bool) { s.away, s.partly = all, !all }

// burden makes a halted sink leave. It is false where it is not halted, or on its way.
func (s *state) burden() bool {
	if !s.halted || s.away || s.leaving {
		return false
	}
	s.leaving = true
	return true
}

// left notes that the state knows the sink as absent.
func (s *state) left() { s.away, s.leaving = true, false }

// goOn notes that the sink is open again. It stays halted where it has left meanwhile, or is to.
func (s *state) goOn() (halted bool) {
	s.halted = s.leaving || s.away && s.joined
	return s.halted
}

// comeBack makes the sink one that is opened as if in a new process.
func (s *state) comeBack() { s.joined = false }

// rejoin notes that the sink is in line again, and is asked about each stream.
func (s *state) rejoin() { s.halted, s.away, s.partly = false, false, false }

// lacks says whether the sink's log may lack what the line has gone past.
func (s state) lacks() bool { return s.away || s.halted || s.partly }

// misses says whether the sink is absent from any of its streams.
func (s state) misses() bool { return s.away || s.partly }
