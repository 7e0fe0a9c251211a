package line

import (
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Work is received from when the committer has work; moved, when it has work that can wait, since a bookmark came.
func (l *Line) Work() (work, moved <-chan struct{}) { return l.wake, l.moved }

// Advance returns what may be saved now, in batches that are each whole: the records that every listener acknowledged,
// or that go to disk for it, with all before them (I2), and with the last of them the marks up to which nothing will be
// asked for again.
func (l *Line) Advance() []*Batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := collector{seats: l.seats}
	spooling := masked(l.seats, func(s *seat) bool { return s.Disk.State().Takes })
	for _, p := range l.streams.byName {
		p.tracker.AdvanceOver(spooling, c.give)
	}
	c.close()
	for _, b := range c.batches {
		l.streams.leaving = append(l.streams.leaving, b.Records...)
	}
	if overcommit(l.seats, &l.streams, spooling) {
		l.Wake()
	}
	last := c.last()
	last.Told, l.told = l.told, nil
	for _, s := range l.seats {
		l.advanceMark(s, c.batches)
	}
	return c.batches
}

// advanceMark puts the listener's mark into the last of the batches, where another one may be saved with them. The
// caller holds mu.
func (l *Line) advanceMark(s *seat, batches []*Batch) {
	disk, last := s.Disk.State(), batches[len(batches)-1]
	frontier := l.streams.frontier(s.bit(), l.number.Last()+1)
	if !disk.Behind { // what is on disk is still to be compared
		s.Recovery.With(func(r *Recovery) {
			r.Log.DropOver(frontier)
			for _, b := range batches {
				r.Log.Pass(b.Records)
			}
		})
	}
	// Of what is taken and on disk some may have been found before it, and after a crash all of it is compared again.
	if s.Recovery.IsOver() && !disk.Taken {
		s.resume.release()
	}
	if mark, ok := s.resume.next(frontier); ok {
		s.mark(mark, last)
		s.resume.plain = mark
		s.Recovery.With(func(r *Recovery) { r.Log.Compared() })
		if s.resume.carries {
			last.carry(s.Name, carried{})
			s.resume.carries = false
		}
	}
	if !disk.Taken && !disk.Behind { // else it is not known, and the positions move on
		l.carry(s, frontier, last)
	}
}

// mark puts the listener's mark into the batch.
func (s *seat) mark(mark sink.Mark, last *Batch) {
	last.Marks[s.Name] = mark
	s.resume.give(mark)
	if s.resume.based && s.Recovery.IsOver() {
		last.compared, s.resume.based = append(last.compared, s.Name), false
	}
}

// carry lets a mark that lags go on, with the ids of what keeps it back. The caller holds mu.
func (l *Line) carry(s *seat, frontier uint64, last *Batch) {
	seq, mark, ok := s.resume.lags(l.MarkLag)
	if !ok {
		return
	}
	s.resume.carryAt = seq + l.MarkLag
	of := carried{cluster: l.ClusterUID, from: s.resume.plain}
	s.Recovery.With(func(r *Recovery) {
		if s.resume.compared < frontier {
			r.Log.Compared()
		}
		of.found, ok = r.Log.Remaining()
	})
	if !ok {
		return
	}
	for _, p := range l.streams.byName {
		p.tracker.Written(s.index, func(rec *change.Record) { of.records = append(of.records, rec) })
	}
	if of.bytes() > l.MostCarried {
		return
	}
	s.mark(mark, last)
	last.carry(s.Name, of)
	s.resume.carried(seq, mark)
}

// Withdraw takes the marks out of the batch that a rewind has taken back since Advance.
func (l *Line) Withdraw(batch *checkpoint.Batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.seats {
		if mark, found := batch.Marks[s.Name]; found && mark != s.resume.given {
			delete(batch.Marks, s.Name)
			delete(batch.Carried, s.Name)
		}
	}
}

// Saved tells those who wait that the batch is part of the saved state.
func (l *Line) Saved(batch *Batch) {
	for _, s := range l.seats {
		s.Recovery.Saved(s.Name, batch.Records, batch.Told)
	}
	l.Images.saved(batch.Records)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.streams.saved(batch.Records)
	l.window.leave(batch.Records...)
}
