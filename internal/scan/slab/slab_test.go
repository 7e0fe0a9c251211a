package slab

import (
	"bytes"
	"testing"
)

func TestWhatIsHandedOutIsNobodyElses(t *testing.T) {
	var s Slab
	var all [][]byte
	for i := range 2000 {
		n := i * 37 % 3000
		if i%500 == 0 {
			n = 40_000
		}
		taken := s.Take(n)
		if i%3 == 0 { // more than there was to be room for
			taken = s.Keep(append(s.Room(n/2), make([]byte, n)...))
		}
		if len(taken) != n || cap(taken) != n {
			t.Fatalf("took %d bytes of %d, want %d", len(taken), cap(taken), n)
		}
		for j := range taken {
			taken[j] = byte(i)
		}
		all = append(all, taken)
	}
	for i, taken := range all {
		if !bytes.Equal(taken, bytes.Repeat([]byte{byte(i)}, len(taken))) {
			t.Fatalf("the %dth was written to by another", i)
		}
	}
}

func TestWhatIsNotKeptIsHandedOutAgain(t *testing.T) {
	var s Slab
	s.Take(1)
	free := s.Free()
	_ = append(s.Room(100), "lost"...)
	if s.Free() != free || string(s.Keep(append(s.Room(100), "kept"...))) != "kept" || s.Free() != free-4 {
		t.Errorf("%d bytes are free of %d", s.Free(), free)
	}
}
