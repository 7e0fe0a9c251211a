package frame

// The first slab of a stream is small, since most streams are quiet; the next ones grow to a size at which making one
// no longer matters.
const (
	minSlab = 4 << 10
	maxSlab = 64 << 10
)

// slab hands out memory for objects by carving up larger pieces: a piece of its own for each object costs a third of
// the throughput. Nothing is ever taken back; the garbage collector frees a piece when its last object is gone.
type slab struct {
	free []byte
	size int
}

// take returns n bytes that nobody else has, and that cannot be appended to.
func (s *slab) take(n int) []byte {
	if n > maxSlab/4 {
		return make([]byte, n)
	}
	if n > len(s.free) {
		s.size = min(max(2*s.size, minSlab), maxSlab)
		for s.size < 4*n {
			s.size *= 2
		}
		s.free = make([]byte, s.size)
	}
	taken := s.free[:n:n]
	s.free = s.free[n:]
	return taken
}
