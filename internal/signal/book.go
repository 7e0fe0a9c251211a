package signal

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
)

const (
	// MaxID is the most bytes that an id may have.
	MaxID = 256
	// mostIDs is how many ids are remembered, the newest ones (I6).
	mostIDs = 1000
	// idSize is how many bytes are remembered of each.
	idSize = 8
)

// Book is what is remembered of those who ask through one broker. A Book is not changed: With and its like return the
// next one.
type Book struct {
	IDs   []byte `json:"ids,omitempty"`   // hashes of the ids that were followed, oldest first
	Place string `json:"place,omitempty"` // in the log of what is asked, as its reader writes it
	Tasks []Task `json:"tasks,omitempty"` // snapshots that somebody is to be told of
}

// ParseBook reads what Encode has written; nothing is an empty book.
func ParseBook(text []byte) (b Book, err error) {
	if len(text) == 0 {
		return b, nil
	}
	if err := json.Unmarshal(text, &b); err != nil {
		return b, fmt.Errorf("read what was asked for through a broker: %w", err)
	}
	return b, nil
}

// Encode is the book as it is saved.
func (b Book) Encode() []byte {
	text, _ := json.Marshal(b) // of bytes and texts it cannot fail
	return text
}

// Has says whether the id was followed. The empty id is none.
func (b Book) Has(id string) bool {
	hash := hashOf(id)
	for rest := b.IDs; id != "" && len(rest) >= idSize; rest = rest[idSize:] {
		if bytes.Equal(rest[:idSize], hash) {
			return true
		}
	}
	return false
}

// With is the book that knows the id, too.
func (b Book) With(id string) Book {
	if id == "" {
		return b
	}
	ids := append(bytes.Clone(b.IDs), hashOf(id)...)
	b.IDs = ids[max(0, len(ids)-mostIDs*idSize):]
	return b
}

// At is the book at the place.
func (b Book) At(place string) Book {
	b.Place = place
	return b
}

// WithTask is the book that has the task, too.
func (b Book) WithTask(t Task) Book {
	b.Tasks = append(slices.Clone(b.Tasks), t)
	return b
}

// IsFull says whether no more tasks are taken.
func (b Book) IsFull() bool {
	parts := 0
	for i := range b.Tasks {
		parts += len(b.Tasks[i].Parts)
	}
	return len(b.Tasks) >= MostTasks || parts >= mostParts
}

func hashOf(id string) []byte {
	sum := sha256.Sum256([]byte(id))
	return sum[:idSize]
}
