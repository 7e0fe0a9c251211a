package line

import (
	"math"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Seat is a listener's place in line.
type Seat struct {
	line *Line
	of   *seat
}

// Seat is the place of the listener, counted as in New.
func (l *Line) Seat(listener int) *Seat { return &Seat{l, l.seats[listener]} }

// Wake tells the committer that it has work.
func (s *Seat) Wake() { s.line.Wake() }

// Ack records that the listener's sink holds the records durably (I1), and, with a mark, that its log stands there
// after the last of them.
func (s *Seat) Ack(batch []*change.Record, mark sink.Mark) error {
	return s.settle(batch, mark, (*checkpoint.Tracker).Ack)
}

// Spare records that the listener's sink has the records, or something newer of their objects, since before it was
// opened.
func (s *Seat) Spare(batch []*change.Record) error {
	return s.settle(batch, "", (*checkpoint.Tracker).Spare)
}

// settle answers for the records. What was written before lies before the mark, whatever its number: a batch from disk
// has none, and a queue that coalesces does not rise.
func (s *Seat) settle(batch []*change.Record, mark sink.Mark, how answer) error {
	s.line.mu.Lock()
	defer s.line.mu.Unlock()
	tracked, counts := s.of.Delivered(batch)
	seq, err := s.line.streams.settle(s.of.index, tracked, how)
	if err != nil {
		return err
	}
	s.keepTold(batch)
	if !counts {
		mark = ""
	}
	s.of.resume.wrote(seq, mark)
	s.line.Wake()
	return nil
}

// keepTold notes for the next batch what the listener itself has told, where the sink may miss the stream or did so
// until now: nobody tells it once more. What the log holds after the mark is read again, so this is saved with the
// mark. The caller holds mu.
func (s *Seat) keepTold(batch []*change.Record) {
	if !s.line.anyAway.Load() {
		return
	}
	for _, rec := range batch {
		if rec.Aside && rec.Op == change.Deleted {
			s.line.told = append(s.line.told, checkpoint.Held{
				Subscription: checkpoint.Subscription{Sink: s.of.Name, Stream: rec.Stream.String()},
				Entry:        change.Entry{Key: rec.Key, UID: rec.UID, ResourceVersion: rec.ResourceVersion},
			})
		}
	}
}

// Compare notes that the listener is about to compare records up to seq with what its sink's log held before. Those
// that it holds lie before every mark that comes, also where a record with a lower Seq is written after them; and what
// the log tells of is forgotten on behalf of records that are not delivered yet. So no such mark counts before they are
// saved.
func (s *Seat) Compare(seq uint64) {
	s.line.mu.Lock()
	defer s.line.mu.Unlock()
	s.of.resume.compare(seq)
}

// Rewind makes the mark the one to go on from, when the sink is open or its log has lost records; plain is the newest
// one that carries nothing.
func (s *Seat) Rewind(mark, plain sink.Mark) {
	s.line.mu.Lock()
	defer s.line.mu.Unlock()
	s.of.resume.rewind(mark, plain)
}

// Base notes that the sink's log is compared with positions of its own until a mark is saved.
func (s *Seat) Base() {
	s.line.mu.Lock()
	defer s.line.mu.Unlock()
	s.of.resume.based = true
}

// Newest is the newest record of the stream that is chosen and not part of the saved state, nil where there is none.
func (s *Seat) Newest(stream string, chosen func(*change.Record) bool) *change.Record {
	s.line.mu.Lock()
	defer s.line.mu.Unlock()
	return s.line.streams.newest(stream, chosen)
}

// Miss makes the listener miss the streams.
func (s *Seat) Miss(streams ...string) {
	s.line.mu.Lock()
	defer s.line.mu.Unlock()
	s.miss(streams)
}

func (s *Seat) miss(streams []string) {
	for _, stream := range streams {
		s.line.streams.named(stream).sendAway(s.of)
		s.line.anyAway.Store(true)
	}
}

// Leave takes the listener out of the line: it misses the streams, and goes on from the saved mark one day.
func (s *Seat) Leave(saved sink.Mark, streams []string) {
	s.line.mu.Lock()
	defer s.line.mu.Unlock()
	s.miss(streams)
	s.of.resume.leave(saved)
	s.line.window.wakeAll()
	s.line.Wake()
}

// Take makes the listener miss the stream no more, of which it is owed nothing.
func (s *Seat) Take(stream string) {
	s.line.mu.Lock()
	defer s.line.mu.Unlock()
	s.line.streams.named(stream).away &^= s.of.bit()
}

// Expect notes that the stream is asked for the snapshot with which the sink comes back.
func (s *Seat) Expect(stream string, generation uint64) {
	s.line.mu.Lock()
	defer s.line.mu.Unlock()
	s.line.streams.named(stream).expect(s.of.Name, generation)
}

// Returns is the generation of the snapshot with which the sink comes back to the stream, or one above all where it was
// not asked for.
func (s *Seat) Returns(stream string) (generation uint64) {
	s.line.mu.Lock()
	defer s.line.mu.Unlock()
	if generation, asked := s.line.streams.named(stream).returns[s.of.Name]; asked {
		return generation
	}
	return math.MaxUint64
}

// Reaches says whether the sink is given the stream's records.
func (s *Seat) Reaches(stream string) bool {
	s.line.mu.Lock()
	defer s.line.mu.Unlock()
	return s.line.streams.named(stream).away&s.of.bit() == 0
}
