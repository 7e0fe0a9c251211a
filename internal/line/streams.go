package line

import (
	"fmt"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// streams are the records in line that are not part of the saved state, by stream. It is pure; the line's mu guards it.
type streams struct {
	byName  map[string]*progress
	name    []byte           // of a stream, while it is looked for
	recent  *change.Stream   // the one that was looked for last
	found   *progress        // what came of it; nil is none
	leaving []*change.Record // given to the committer, and not part of the saved state yet
}

// named is the stream's progress.
func (s *streams) named(stream string) *progress {
	p := s.byName[stream]
	if p == nil {
		p = &progress{}
		s.byName[stream] = p
	}
	return p
}

// of returns the progress of the record's stream, nil of one that has none yet. It is asked several times a record, so
// it makes no string of the name, and nearly always the stream is that of the record before.
func (s *streams) of(rec *change.Record) *progress {
	if rec.Stream != s.recent || s.found == nil {
		s.name = rec.Stream.AppendString(s.name[:0])
		s.recent, s.found = rec.Stream, s.byName[string(s.name)]
	}
	return s.found
}

// add puts a record in that the listeners of the bit mask want. It returns those that are to have it, and those that
// miss it: they have left meanwhile. own is the bit of the sink that the record is for alone.
func (s *streams) add(rec *change.Record, wanted, own uint64) (given, missing uint64, err error) {
	p := s.of(rec)
	if p == nil {
		p = s.named(rec.Stream.String())
	}
	p.away = p.missing(rec, own)
	given, missing = wanted&^p.away, wanted&p.away
	if err := p.tracker.Add(rec, given); err != nil {
		return 0, 0, fmt.Errorf("track record %d of %s: %w", rec.Seq, rec.Stream, err)
	}
	p.added++
	p.takers |= given
	return given, missing, nil
}

// missing are the listeners that miss the record.
func (s *streams) missing(rec *change.Record, own uint64) uint64 {
	if p := s.of(rec); p != nil {
		return p.missing(rec, own)
	}
	return 0
}

// answer is how a listener answers for a record: with checkpoint.Tracker's Ack or Spare.
type answer func(t *checkpoint.Tracker, listener int, seq uint64) error

// settle answers for the records, and returns the highest Seq.
func (s *streams) settle(listener int, records []*change.Record, how answer) (seq uint64, err error) {
	for _, rec := range records {
		if err := how(&s.of(rec).tracker, listener, rec.Seq); err != nil {
			return 0, fmt.Errorf("acknowledge record %d of %s: %w", rec.Seq, rec.Stream, err)
		}
		seq = max(seq, rec.Seq)
	}
	return seq, nil
}

// saved notes that the records are part of the saved state. They come in the order in which they were given to the
// committer.
func (s *streams) saved(records []*change.Record) {
	for _, rec := range records {
		s.of(rec).committed++
	}
	n := min(len(records), len(s.leaving))
	clear(s.leaving[:n])
	if s.leaving = s.leaving[n:]; len(s.leaving) == 0 {
		s.leaving = nil
	}
}

// forget drops what is known of a stream of which nothing is under way.
func (s *streams) forget(stream string) {
	if p := s.byName[stream]; p != nil && p.added == p.committed {
		delete(s.byName, stream)
		s.found = nil
	}
}

// holders are the listeners that have not taken the oldest record of some stream for so long, as a bit mask.
func (s *streams) holders(now time.Time, age time.Duration) (mask uint64) {
	for _, p := range s.byName {
		if since, missing, waits := p.tracker.Waits(); waits && now.Sub(since) >= age {
			mask |= missing
		}
	}
	return mask
}

// frontier is the Seq of the oldest record that is not saved in the streams that the listener takes, or else next.
func (s *streams) frontier(bit, next uint64) uint64 {
	for _, p := range s.byName {
		if first, ok := p.tracker.First(); ok && p.takers&bit != 0 {
			next = min(next, first)
		}
	}
	return next
}

// newest is the newest record of the stream that is chosen, nil where there is none.
func (s *streams) newest(stream string, chosen func(*change.Record) bool) *change.Record {
	if rec := s.named(stream).tracker.Newest(chosen); rec != nil {
		return rec
	}
	for i := len(s.leaving) - 1; i >= 0; i-- {
		if rec := s.leaving[i]; chosen(rec) && rec.Stream.String() == stream {
			return rec
		}
	}
	return nil
}

// oldest is, by stream, when the oldest record was received. A stream that waits for nothing is not in it.
func (s *streams) oldest() map[string]time.Time {
	oldest := map[string]time.Time{}
	for _, rec := range s.leaving { // they come before what is in the trackers, each stream's in its order
		if name := rec.Stream.String(); oldest[name].IsZero() {
			oldest[name] = rec.Received
		}
	}
	for name, p := range s.byName {
		if since, _, waits := p.tracker.Waits(); waits && oldest[name].IsZero() {
			oldest[name] = since
		}
	}
	return oldest
}
