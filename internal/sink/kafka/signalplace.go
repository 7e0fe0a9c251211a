package kafka

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// signalPlace is a place in a topic of signals.
type signalPlace struct {
	Name  string          `json:"name"`  // of the topic
	Topic string          `json:"topic"` // its id; "" while there is no topic
	Next  map[int32]int64 `json:"next,omitempty"`
	Time  int64           `json:"time"` // of the newest message that was read, in ms since 1970
	// Old is until when messages are old: a topic of the name that was there before may have had them.
	Old int64 `json:"old,omitempty"`
}

// noID is the id of topics where brokers give none (before Kafka 2.8).
const noID = "unknown"

// parseSignalPlace is the inverse of encode; "" is no place.
func parseSignalPlace(text string) (p signalPlace, err error) {
	if text == "" {
		return p, nil
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return p, fmt.Errorf("read the place in the topic of signals: %w", err)
	}
	return p, nil
}

func (p signalPlace) encode() string {
	text, _ := json.Marshal(p) // of numbers and texts it cannot fail
	return string(text)
}

// found is what there is of the topic now.
type found struct {
	name string
	id   string // "" is that there is none
	ends map[int32]wire.Bounds
	now  int64 // in ms since 1970
}

// arrive is the place to read on from. Who was nowhere, or in a topic of another name, begins at the end.
func (p signalPlace) arrive(at *found) signalPlace {
	next := signalPlace{Name: at.name, Topic: at.id, Next: map[int32]int64{}, Time: p.Time, Old: p.Old}
	nowhere := p.Name != at.name
	if nowhere {
		next.Time, next.Old = at.now, 0
	}
	if !nowhere && at.id != p.Topic || at.id == "" { // made anew, perhaps filled with what was in the one before
		next.Old = next.Time
	}
	for number, bounds := range at.ends {
		switch read, known := p.Next[number]; {
		case nowhere:
			next.Next[number] = bounds.End
		case at.id != p.Topic || !known:
			next.Next[number] = bounds.First
		default:
			next.Next[number] = min(max(read, bounds.First), bounds.End) // the log may have lost both ends
		}
	}
	return next
}

// behind is the place after one more message.
func (p signalPlace) behind(number int32, offset, time int64) signalPlace {
	p.Next = maps.Clone(p.Next)
	p.Next[number], p.Time = offset+1, max(p.Time, time)
	return p
}
