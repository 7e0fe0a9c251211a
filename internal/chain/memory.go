package chain

// mostRemembered is how many objects of a generation are remembered (I6): two take 10 MiB at most.
const mostRemembered = 1 << 17

// state is one of an object; the zero value is none that anything may be folded onto.
type state struct{ version, form uint64 }

// memory is what is known of the objects that changed last: a young generation, and the one before it. An object that
// has not changed while so many others did is forgotten with the old one.
type memory struct {
	most       int
	young, old map[uint64]state
}

// get is the zero state where nothing is known.
func (m *memory) get(object uint64) state {
	if s, known := m.young[object]; known {
		return s
	}
	return m.old[object]
}

// put remembers the state; the zero state is forgotten.
func (m *memory) put(object uint64, s state) {
	delete(m.old, object)
	if s == (state{}) {
		delete(m.young, object)
		return
	}
	if _, known := m.young[object]; !known && len(m.young) >= m.most {
		m.young, m.old = nil, m.young
	}
	if m.young == nil {
		m.young = map[uint64]state{}
	}
	m.young[object] = s
}

func (m *memory) clear() { m.young, m.old = nil, nil }
