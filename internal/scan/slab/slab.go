package slab

// The first slab of a stream is small, since most streams are quiet; the next ones grow to a size at which making one
// no longer matters.
const (
	minSlab = 4 << 10
	maxSlab = 64 << 10
)

// Slab is memory that nobody has yet. Its zero value is ready. It is for one goroutine at a time.
type Slab struct {
	free []byte
	size int
}

// Free is how many bytes are left of the present piece.
func (s *Slab) Free() int { return len(s.free) }

// Of is a slab of the memory.
func Of(free []byte) Slab { return Slab{free: free} }

// Take returns n bytes that nobody else has, and that cannot be appended to.
func (s *Slab) Take(n int) []byte { return s.Keep(s.Room(n)[:n]) }

// Room returns an empty slice with room for n bytes at least. What is written there is kept by Keep, before the next
// call of either.
func (s *Slab) Room(n int) []byte {
	if n > maxSlab/4 {
		return make([]byte, 0, n)
	}
	if n > len(s.free) {
		s.size = min(max(2*s.size, minSlab), maxSlab)
		for s.size < 4*n {
			s.size *= 2
		}
		s.free = make([]byte, s.size)
	}
	return s.free[:0]
}

// Keep returns what was written into a Room, as bytes that nobody else has, and that cannot be appended to. What had no
// room there has memory of its own.
func (s *Slab) Keep(written []byte) []byte {
	n := len(written)
	if n > 0 && n <= len(s.free) && &written[0] == &s.free[0] {
		s.free = s.free[n:]
	}
	return written[:n:n]
}
