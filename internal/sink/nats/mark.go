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
	// Writer, of a shared stream, is a hash of the one whose messages are ours.
	Writer string `json:"writer,omitempty"`
	Held   *held  `json:"held,omitempty"`
}

// parseMark returns nil for the empty mark.
func parseMark(text sink.Mark) (*mark, error) {
	if text == "" {
		return nil, nil
	}
	var m mark
	if err := json.Unmarshal([]byte(text), &m); err != nil || m.Stream == "" || m.Created.IsZero() {
		return nil, sink.Permanent("read mark %q: not a place in a stream: the saved state belongs to another kind of sink", text)
	}
	return &m, nil
}

func (m mark) text() sink.Mark {
	text, _ := json.Marshal(m) // of texts, numbers, and times that the server sent as JSON it cannot fail
	return sink.Mark(text)
}

func (m mark) String() string {
	return fmt.Sprintf("sequence %d of stream %s made at %s", m.Seq, m.Stream, m.Created.Format(time.RFC3339Nano))
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

// held is what a stream held when it was looked at. A purge after which something was written shows in nothing else:
// the sequences go on.
type held struct {
	Gone uint64    `json:"gone"`           // messages that were stored once, and were not there any more
	Keys uint64    `json:"keys,omitempty"` // of a bucket: its keys, those with a delete marker among them
	Last uint64    `json:"last"`           // the message that was stored last, a while ago
	Time time.Time `json:"time"`           // when that was
}

// hold is what the stream holds. Of what it held before, it keeps the message that limits will leave there for long.
func hold(info *jetstream.StreamInfo, before *held) *held {
	h := &held{Gone: gone(info)}
	if info.State.Msgs > 0 {
		h.Last, h.Time = info.State.LastSeq, info.State.LastTime
	}
	if info.Config.MaxMsgsPerSubject > 0 {
		h.Keys = info.State.NumSubjects
	}
	if before == nil || before.Last == 0 {
		return h
	}
	config := &info.Config
	aged := config.MaxAge > 0 && info.TimeStamp.Sub(before.Time) > config.MaxAge/2
	pushed := config.MaxMsgs > 0 && info.State.LastSeq-before.Last > uint64(config.MaxMsgs)/2
	if !aged && !pushed { // half of the way to a limit is still before the message
		h.Last, h.Time = before.Last, before.Time
	}
	return h
}

// gone counts the messages that were stored once and are not there any more.
func gone(info *jetstream.StreamInfo) uint64 {
	first := max(info.Config.FirstSeq, 1)
	return info.State.LastSeq + 1 - min(first, info.State.LastSeq+1) - info.State.Msgs
}

// missing says what the stream has no more although nothing of its configuration takes it away; "" is nothing. A limit
// in bytes, and lives of single messages, can explain whatever is missing, but for a stream that has nothing of what
// was stored up to a sequence; 0 is that it may be emptied, to make room. unread are the messages after the mark that
// are gone: nothing says that they were delivered. Of a shared stream others may take away what is theirs.
func (h *held) missing(info *jetstream.StreamInfo, stored, unread uint64, shared bool) string {
	config, state := &info.Config, &info.State
	bounded := config.MaxBytes > 0 && config.Discard == jetstream.DiscardOld
	aged := func(since time.Time) bool { return config.MaxAge > 0 && info.TimeStamp.Sub(since) >= config.MaxAge }
	switch {
	case h == nil, config.AllowMsgTTL:
		return ""
	case state.Msgs == 0 && stored >= max(config.FirstSeq, 1) && !aged(state.LastTime): // other limits leave the newest
		return "there is nothing"
	case bounded:
		return ""
	case config.MaxMsgsPerSubject > 0:
		// a key stays, with its value or with the marker of its delete, until somebody purges it
		if config.MaxAge == 0 && state.NumSubjects < h.Keys {
			return fmt.Sprintf("it has %d keys, and had %d", state.NumSubjects, h.Keys)
		}
		return ""
	case config.MaxBytes > 0: // whoever makes room takes messages away
		return ""
	case config.MaxAge == 0 && config.MaxMsgs <= 0 && !shared:
		if now := gone(info); now > h.Gone+unread {
			return fmt.Sprintf("%d messages were taken away", now-h.Gone-unread)
		}
		return ""
	}
	pushed := config.MaxMsgs > 0 && state.LastSeq-h.Last >= uint64(config.MaxMsgs)
	if h.Last > 0 && state.FirstSeq > h.Last && !aged(h.Time) && !pushed {
		return fmt.Sprintf("message %d is gone, and no limit has taken it", h.Last)
	}
	return ""
}
