package checkpoint

import (
	"crypto/rand"
	"fmt"
)

// redactionKeySize is that of the hash that it is used with, SHA-256.
const redactionKeySize = 32

// RedactionKey is this state's key of the hashes that stand for secret values. It is made at the first call and stays,
// so that a value has one hash for as long as the state lives.
func (s *Store) RedactionKey() ([]byte, error) {
	key, found, err := s.get(redactionKey())
	if err != nil || found {
		return key, err
	}
	key = make([]byte, redactionKeySize)
	rand.Read(key) // never fails
	err = s.write(func(w *writer) error { return w.batch.Set(redactionKey(), key, nil) })
	if err != nil {
		return nil, fmt.Errorf("save the key of redacted values: %w", err)
	}
	return key, nil
}
