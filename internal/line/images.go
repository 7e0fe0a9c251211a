package line

import (
	"sync"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Objects are those that the saved state keeps; *checkpoint.Store is one.
type Objects interface {
	Object(stream string, key change.Key) (change.Image, bool, error)
}

// Images knows each object as it was delivered last, or is on its way: the state has what is saved, and what is in line
// and not saved yet is noted here. It holds no more than the line does (I6).
type Images struct {
	store Objects

	mu      sync.Mutex                               // guards the following
	pending map[string]map[change.Key]*change.Record // by stream: the newest record of the object that is not saved
}

// NewImages returns what the store keeps.
func NewImages(store Objects) *Images {
	return &Images{store: store, pending: map[string]map[change.Key]*change.Record{}}
}

// Last is the object of the key as the records in line leave it, or else as the state has it; false where none is kept.
// The goroutine that pushes the stream's records is told the newest. For another one the answer may lack what is pushed
// meanwhile.
func (m *Images) Last(stream string, key change.Key) (change.Image, bool, error) {
	m.mu.Lock()
	rec := m.pending[stream][key]
	m.mu.Unlock()
	if rec == nil { // and if there was one, it is saved by now
		return m.store.Object(stream, key)
	}
	object, _ := rec.Keeps()
	return change.Image{UID: rec.UID, Object: object}, object != nil, nil
}

// note takes a record that goes in line.
func (m *Images) note(rec *change.Record) {
	if m == nil {
		return
	}
	if _, changed := rec.Keeps(); !changed {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	stream := rec.Stream.String()
	if m.pending[stream] == nil {
		m.pending[stream] = map[change.Key]*change.Record{}
	}
	m.pending[stream][rec.Key] = rec
}

// saved forgets the records that are part of the state.
func (m *Images) saved(records []*change.Record) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, rec := range records {
		if !rec.Keep {
			continue
		}
		stream := rec.Stream.String()
		if m.pending[stream][rec.Key] == rec {
			delete(m.pending[stream], rec.Key)
		}
	}
}
