package source

import (
	"context"
	"errors"
)

// The watch and the reader put records in line by turns (I3). The turn guards what both use: the cursor, what was told
// recently, the snapshot that is being read, and which watch is open.

// errWatchEnded says that the watch has ended that a page was compared beside. What the next server says may be of
// another history, so the page is read again.
var errWatchEnded = errors.New("the watch has ended that the snapshot was read beside")

// turns is one at a time. It is a channel, since whoever has the turn may wait long for room in a queue.
type turns chan struct{}

func newTurns() turns { return make(turns, 1) }

func (t turns) take() { t <- struct{}{} }
func (t turns) give() { <-t }

// takeTurn returns how to give the turn back, or ctx's error.
func (s *Stream) takeTurn(ctx context.Context) (give func(), err error) {
	select {
	case s.turns <- struct{}{}:
		return s.turns.give, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// opened notes that a watch is open, and returns its number.
func (s *Stream) opened() int {
	s.turns.take()
	defer s.turns.give()
	s.watches++
	s.open = s.watches
	s.signalReader()
	return s.open
}

// closed notes that the watch has ended; the caller has the turn.
func (s *Stream) closed(number int) {
	if s.open == number {
		s.open = 0
	}
}

// signalReader makes the reader look again, if it waits.
func (s *Stream) signalReader() {
	select {
	case s.moved <- struct{}{}:
	default:
	}
}
