package listener

import (
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// Images knows each object as it was told last. What is not saved yet is noted here: no more than one batch (I6), since
// it is saved with the next one, whoever has it by then. Each has its version, which says of which sinks it is Before
// (Has).
type Images struct {
	store interface {
		Object(stream string, key change.Key) (change.Image, bool, error)
	}

	mu     sync.Mutex // guards the following
	noted  map[imageKey]*checkpoint.KeptObject
	saving map[imageKey]*checkpoint.KeptObject
}

type imageKey struct {
	stream string
	key    change.Key
}

// NewImages are those that the store keeps.
func NewImages(store *checkpoint.Store) *Images {
	return &Images{store: store, noted: map[imageKey]*checkpoint.KeptObject{}}
}

// Last is the object of the key, false where none is kept.
func (m *Images) Last(stream string, key change.Key) (change.Image, bool, error) {
	m.mu.Lock()
	kept := m.noted[imageKey{stream, key}]
	if kept == nil {
		kept = m.saving[imageKey{stream, key}]
	}
	m.mu.Unlock()
	if kept == nil { // and if there was one, it is saved by now
		return m.store.Object(stream, key)
	}
	return change.Image{UID: kept.UID, Version: kept.Version, Object: kept.Object}, kept.Object != nil, nil
}

// Note keeps what the record tells of its object, in the form in which it is told.
func (m *Images) Note(rec *change.Record) {
	object, changed := rec.Keeps()
	if !changed {
		return
	}
	stream := rec.Stream.String()
	key := change.Key{Namespace: strings.Clone(rec.Key.Namespace), Name: strings.Clone(rec.Key.Name)}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.noted[imageKey{stream, key}] = &checkpoint.KeptObject{
		Stream: stream, Key: key, UID: strings.Clone(rec.UID), Version: strings.Clone(rec.ResourceVersion), Object: object,
	}
}

// Has says whether the sink was given the object that is kept with the version: last is what it was told. What was told
// since then, and is not kept, said nothing of the object: it was withheld, or is ignored.
func Has(last checkpoint.Row, kept string) bool {
	return last.Exists() && change.CompareVersions(kept, last.At.Version) <= 0
}

// forget keeps nothing of an object of which a sink's log says something newer than what is kept.
func (m *Images) forget(said *checkpoint.Item) error {
	for _, stream := range []string{said.Resource, said.Key.Namespace + "/" + said.Resource} {
		kept, found, err := m.Last(stream, said.Key)
		switch {
		case err != nil:
			return fmt.Errorf("look up the last form of %s in %s: %w", said.Key, stream, err)
		case !found || change.CompareVersions(kept.Version, said.At.Version) >= 0:
			continue
		}
		m.mu.Lock()
		m.noted[imageKey{stream, said.Key}] = &checkpoint.KeptObject{Stream: stream, Key: said.Key}
		m.mu.Unlock()
	}
	return nil
}

// take returns what is to be saved, until saved is told that it is.
func (m *Images) take() (kept []checkpoint.KeptObject) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.saving == nil {
		m.saving = map[imageKey]*checkpoint.KeptObject{}
	}
	maps.Copy(m.saving, m.noted)
	m.noted = map[imageKey]*checkpoint.KeptObject{}
	for _, object := range m.saving {
		kept = append(kept, *object)
	}
	return kept
}

func (m *Images) saved() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.saving = nil
}
