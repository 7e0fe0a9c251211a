package delivery

import "testing"

// TestI1ASinkIsInLineOnlyWhileItIsOpen walks through the lives of a sink.
func TestI1ASinkIsInLineOnlyWhileItIsOpen(t *testing.T) {
	var s state
	if s.burden() || s.misses() || s.lacks() {
		t.Errorf("a sink that is being opened is a burden, or absent: %+v", s)
	}
	s.joined, s.halted = true, true
	if !s.burden() || s.burden() || !s.leaving {
		t.Errorf("a halted sink that others wait for leaves once: %+v", s)
	}
	if !s.goOn() {
		t.Errorf("one that is to leave goes on: %+v", s)
	}
	if s.left(); !s.away || s.leaving || !s.goOn() {
		t.Errorf("one that has left goes on before it came back: %+v", s)
	}
	if s.comeBack(); s.joined || s.goOn() || !s.misses() {
		t.Errorf("one that comes back is opened, and still absent: %+v", s)
	}
	if s.rejoin(); s != (state{}) {
		t.Errorf("one that is in line again is %+v", s)
	}
	if s.miss(false); s.away || !s.misses() || !s.lacks() {
		t.Errorf("one that misses some streams is %+v", s)
	}
	if s.miss(true); !s.away || s.partly {
		t.Errorf("one that misses all is %+v", s)
	}
}
