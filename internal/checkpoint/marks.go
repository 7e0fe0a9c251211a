package checkpoint

import "github.com/kubecdc/kubecdc/internal/sink"

// maxMarks is the most pairs that Marks keeps (I6).
const maxMarks = 1024

// Marks remembers where in its own log one sink stood after each of its writes, and tells which of these marks may be
// saved: one is safe when nothing before it in the log will be asked for again.
//
// It is pure: no lock, clock, goroutine or I/O. The zero value is ready for use.
type Marks struct{ pairs []marked }

// marked says that everything which the sink was given up to and with seq lies before mark in its log.
type marked struct {
	seq  uint64
	mark sink.Mark
}

// Written records the mark that a write returned, with the Seq of the write's last record. A sink that is opened again
// and told nothing new repeats its seq: the later mark counts.
func (m *Marks) Written(seq uint64, mark sink.Mark) {
	if n := len(m.pairs); n > 0 && seq <= m.pairs[n-1].seq {
		m.pairs[n-1].mark = mark
		return
	}
	if len(m.pairs) == maxMarks {
		m.thin()
	}
	m.pairs = append(m.pairs, marked{seq, mark})
}

// At is the newest mark whose writes hold only records with a Seq below frontier, and false where there is none.
// Older marks are forgotten, so frontier must not go back.
func (m *Marks) At(frontier uint64) (sink.Mark, bool) {
	n := 0
	for n < len(m.pairs) && m.pairs[n].seq < frontier {
		n++
	}
	if n == 0 {
		return "", false
	}
	kept := copy(m.pairs, m.pairs[n-1:])
	clear(m.pairs[kept:])
	m.pairs = m.pairs[:kept]
	return m.pairs[0].mark, true
}

// Newest is the mark that was recorded last and its seq, false where there is none.
func (m *Marks) Newest() (seq uint64, mark sink.Mark, ok bool) {
	if len(m.pairs) == 0 {
		return 0, "", false
	}
	last := m.pairs[len(m.pairs)-1]
	return last.seq, last.mark, true
}

// Lag is how far seq is ahead of the oldest mark that is remembered, which is the one that may be saved.
func (m *Marks) Lag(seq uint64) uint64 {
	if len(m.pairs) == 0 || seq < m.pairs[0].seq {
		return 0
	}
	return seq - m.pairs[0].seq
}

// thin drops every second pair. An older mark is always safe: it only makes a restart read more of the sink's log.
func (m *Marks) thin() {
	kept := m.pairs[:0]
	for i := 0; i < len(m.pairs); i += 2 {
		kept = append(kept, m.pairs[i])
	}
	clear(m.pairs[len(kept):])
	m.pairs = kept
}
