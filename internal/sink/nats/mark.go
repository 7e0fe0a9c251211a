package nats

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// mark is a place in a stream. The time of its making tells a stream from another one that has its name later.
type mark struct {
	Stream  string    `json:"stream"`
	Created time.Time `json:"created"`
	Seq     uint64    `json:"seq"`
	// Floor, of a bucket, is where it ended when the sink was new or had lost what it had acknowledged. What is
	// still there from before was not written since.
	Floor uint64 `json:"floor,omitempty"`
	// Writer, of a shared stream, is a hash of the one whose messages are ours. Older versions had none, and took all
	// for theirs.
	Writer string `json:"writer,omitempty"`
	Held   *held  `json:"held,omitempty"` // nil in a mark of an older version
}

// parseMark returns nil for the empty mark.
func parseMark(text sink.Mark) (*mark, error) {
	if text == "" {
		return nil, nil
	}
	var m mark
	if err := json.Unmarshal([]byte(text), &m); err != nil || m.Stream == "" || m.Created.IsZero() {
		return nil, permanent("read mark %q: not a place in a stream: the saved state belongs to another kind of sink", text)
	}
	return &m, nil
}

func (m mark) text() sink.Mark {
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // a string, a time that the server sent as JSON, and a number
	}
	return sink.Mark(text)
}

func (m mark) String() string {
	return fmt.Sprintf("sequence %d of stream %s made at %s", m.Seq, m.Stream, m.Created.Format(time.RFC3339Nano))
}

// lostIn says whether the stream is another one than the mark's, or ends before it, or was purged.
func (m mark) lostIn(info *jetstream.StreamInfo) error {
	if err := m.endsBefore(info); err != nil {
		return err
	}
	if purged(info, m.Seq) {
		return &sink.LostError{Log: "stream " + m.Stream, Want: m.String(), Have: "nothing, since it was purged"}
	}
	return nil
}

// markOf is the end of the stream as it is.
func markOf(info *jetstream.StreamInfo) mark {
	return mark{Stream: info.Config.Name, Created: info.Created, Seq: info.State.LastSeq}
}

// endsBefore says whether the stream is another one than the mark's, or ends before it.
func (m mark) endsBefore(info *jetstream.StreamInfo) error {
	have := markOf(info)
	if m.Stream == have.Stream && m.Created.Equal(have.Created) && m.Seq <= have.Seq {
		return nil
	}
	return &sink.LostError{Log: "stream " + have.Stream, Want: m.String(), Have: have.String()}
}
