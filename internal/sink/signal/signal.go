package signal

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Message is what lies in the log of what is asked. It is valid until its reader goes on.
type Message struct {
	Key, Value []byte
	Place      string        // where it lies, "kubecdc-signals-0-12": an id for one that has none
	Offset     int64         // the same within its partition
	After      func() string // the place after it, to be saved
	Old        string        // why it is too old to be followed; "" is that it is not
	Broken     error         // why nothing of it can be read: it has neither key nor value then
}

// The types of signals, as Debezium has them.
const (
	Execute = "execute-snapshot"
	Stop    = "stop-snapshot"
	Pause   = "pause-snapshot"
	Resume  = "resume-snapshot"
	Log     = "log"
)

// What a signal may be at most (I6).
const (
	// MaxSize is in bytes.
	MaxSize        = 64 << 10
	maxCollections = 100
	maxPattern     = 1024 // bytes
	maxType        = 20   // characters of a wrong type that are repeated
)

// ErrEnough is what those who follow signals take no more with until the next pause.
var ErrEnough = errors.New("no more signals are taken for the moment")

// Signal is what somebody asks for. See the page "Sending signals to a Debezium connector" of Debezium's documentation.
type Signal struct {
	ID          string      `json:"-"` // "" is none
	Type        string      `json:"-"` // one of the constants
	Collections []string    `json:"data-collections"`
	Conditions  []Condition `json:"additional-conditions"`
	Message     string      `json:"message"` // of a Log
}

// Condition says of one collection, or of all with "", which objects are meant.
type Condition struct {
	Collection string `json:"data-collection"`
	Filter     string `json:"filter"`
}

// data are the parameters of all types.
type data struct {
	*Signal
	Kind      string `json:"type"`                 // of a snapshot
	Condition string `json:"additional-condition"` // of older versions: for all collections
}

// Parse reads a message. Its error says what is wrong; the signal has what could be read all the same, cut short.
func Parse(value []byte) (s Signal, err error) {
	defer func() {
		if err != nil {
			s.ID, s.Type = s.ID[:min(len(s.ID), MaxID)], ""
		}
	}()
	if len(value) > MaxSize {
		return s, fmt.Errorf("a signal of %d bytes: want %d at most", len(value), MaxSize)
	}
	var m struct { // as it lies in a topic
		ID   string          `json:"id"`
		Type string          `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(value, &m); err != nil {
		return s, fmt.Errorf(`read the signal: %w: want JSON such as {"type":"execute-snapshot","data":{"data-collections":["pods"]}}`, err)
	}
	s.ID, s.Type = m.ID, m.Type
	d := data{Signal: &s}
	var text string // of an object, as a table of signals has it
	if json.Unmarshal(m.Data, &text) == nil {
		m.Data = json.RawMessage(text)
	}
	if len(m.Data) > 0 {
		if err := json.Unmarshal(m.Data, &d); err != nil {
			return s, fmt.Errorf("read data of the signal: %w", err)
		}
	}
	if d.Condition != "" {
		s.Conditions = append(s.Conditions, Condition{Filter: d.Condition})
	}
	return s, d.check()
}

func (s *data) check() error {
	types := []string{Execute, Stop, Pause, Resume, Log}
	long := func(text string) bool { return len(text) > maxPattern }
	switch {
	case len(s.ID) > MaxID:
		return fmt.Errorf("an id of %d bytes: want %d at most", len(s.ID), MaxID)
	case !slices.Contains(types, s.Type):
		return fmt.Errorf("type %.*q: want one of %s", maxType, s.Type, strings.Join(types, ", "))
	case s.Type == Execute && len(s.Collections) == 0:
		return errors.New(`data-collections is missing: want names or regular expressions of resources, such as ["pods"], or [".*"] for all`)
	case len(s.Collections) > maxCollections || len(s.Conditions) > maxCollections:
		return fmt.Errorf("%d data-collections and %d additional-conditions: want %d at most of each", len(s.Collections), len(s.Conditions), maxCollections)
	case slices.ContainsFunc(s.Collections, long):
		return fmt.Errorf("a data-collection of more than %d bytes: want less", maxPattern)
	case s.Kind != "" && !strings.EqualFold(s.Kind, "incremental") && !strings.EqualFold(s.Kind, "blocking"):
		return fmt.Errorf("type %.*q of the snapshot: want incremental, or blocking, which is given in the same way", maxType, s.Kind)
	}
	return nil
}

// Matcher finds the streams that a data-collection stands for. It is an error if there is none.
type Matcher func(collection string) (streams []string, err error)

// Chosen are the streams that the signal names, sorted; none is that it names none.
func (s *Signal) Chosen(match Matcher) (streams []string, err error) {
	for _, collection := range s.Collections {
		some, err := match(collection)
		if err != nil {
			return nil, err
		}
		streams = append(streams, some...)
	}
	slices.Sort(streams)
	return slices.Compact(streams), nil
}

// Parts are the snapshots that an Execute asks for. A condition that is of none of them is an error: it may be that it
// was meant for one.
func (s *Signal) Parts(match Matcher) ([]Part, error) {
	streams, err := s.Chosen(match)
	if err != nil {
		return nil, err
	}
	limits := map[string]change.Limits{}
	for _, c := range s.Conditions {
		meant := streams
		if c.Collection != "" {
			if meant, err = match(c.Collection); err != nil {
				return nil, fmt.Errorf("additional-conditions: %w", err)
			}
			meant = slices.DeleteFunc(meant, func(stream string) bool { return !slices.Contains(streams, stream) })
		}
		if len(meant) == 0 && c.Collection != "" {
			return nil, fmt.Errorf("the additional-condition of %.100q is of no chosen data-collection: choose of %s", c.Collection, cut(strings.Join(streams, ", ")))
		}
		filter, err := parseFilter(c.Filter)
		if err != nil {
			return nil, err
		}
		for _, stream := range meant {
			if known, given := limits[stream]; given && known != filter {
				return nil, fmt.Errorf("two additional-conditions are of %s: join them with AND", stream)
			}
			limits[stream] = filter
		}
	}
	parts := make([]Part, len(streams))
	for i, stream := range streams {
		parts[i] = Part{Stream: stream, Limits: limits[stream]}
	}
	return parts, nil
}

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
