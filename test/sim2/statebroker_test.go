package sim2

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// stateBroker has the log of the state, in slots, of which one member at a time is the writer.
type stateBroker struct {
	world *world

	// guarded by the world's lock
	messages []slotted // the newest of each slot, oldest first
	epoch    int       // so many writers have opened it
	away     time.Time // until then nobody answers
	failing  int       // so many of the next writes break in their middle
}

// slotted is the message of a slot.
type slotted struct {
	slot  string
	value []byte
}

// stateWriter is a member's connection.
type stateWriter struct {
	*stateBroker
	life *life
	mine int // the epoch in which it is the writer
}

var (
	errNoAnswer = errors.New("the broker does not answer")
	errFenced   = errors.New("another exporter writes here")
)

// reach lets a request reach the broker.
func (s *stateWriter) reach(ctx context.Context) error {
	if err := s.life.step("log"); err != nil {
		return err
	}
	if err := s.life.linger(ctx, 1, 6); err != nil {
		return err
	}
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	switch {
	case s.life.dead:
		return errDead
	case time.Now().Before(s.away):
		return errNoAnswer
	}
	return nil
}

// Open is sink.Sink's.
func (s *stateWriter) Open(ctx context.Context, _ sink.Opening) error {
	if err := s.reach(ctx); err != nil {
		return err
	}
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	s.epoch++
	s.mine = s.epoch
	return nil
}

// Write is sink.Sink's. A crash, or the end of a lead, may come in the middle of a unit.
func (s *stateWriter) Write(ctx context.Context, batch []sink.Message) (sink.Mark, error) {
	if err := s.reach(ctx); err != nil {
		return "", err
	}
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	breaks := take(&s.failing)
	for i, m := range batch {
		switch {
		case s.mine != s.epoch && s.world.script.Without != withoutFence:
			return "", errShutOut
		case i == (len(batch)+1)/2 && breaks:
			return "", errNoAnswer
		case i == len(batch)/2:
			if err := s.life.stepLocked("log"); err != nil {
				return "", err
			}
		}
		s.messages = slices.DeleteFunc(s.messages, func(old slotted) bool { return old.slot == m.Destination })
		s.messages = append(s.messages, slotted{m.Destination, slices.Clone(m.Value)})
	}
	if breaks {
		return "", errNoAnswer // and the answer is lost
	}
	return "", nil
}

// Close is sink.Sink's.
func (s *stateWriter) Close(context.Context) error { return nil }

// stateReader reads the log once, and then what has come since.
type stateReader struct {
	from *stateWriter
	seen []slotted
}

// Read is sink.Reader's.
func (r *stateReader) Read(ctx context.Context, each func(*sink.Stored) error) error {
	if err := r.from.reach(ctx); err != nil {
		return err
	}
	r.from.world.mu.Lock()
	now := slices.Clone(r.from.messages)
	r.from.world.mu.Unlock()
	for _, m := range now {
		if slices.ContainsFunc(r.seen, m.is) {
			continue
		}
		if err := each(&sink.Stored{Place: "the log", Value: m.value}); err != nil {
			return err
		}
	}
	r.seen = now
	return nil
}

// is says whether it is the same message.
func (m slotted) is(other slotted) bool { return &m.value[0] == &other.value[0] }

// Close is sink.Reader's.
func (r *stateReader) Close() error { return nil }
