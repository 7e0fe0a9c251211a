package nats

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/change"
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
	Held  *held  `json:"held,omitempty"`
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
// are gone: nothing says that they were delivered.
func (h *held) missing(info *jetstream.StreamInfo, stored, unread uint64) string {
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
	case config.MaxAge == 0 && config.MaxMsgs <= 0:
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

// validSubject says whether a message can be published to the subject.
func validSubject(text string) bool {
	for token := range strings.SplitSeq(text, ".") {
		if token == "" || token == "*" || token == ">" {
			return false
		}
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

// A server cuts the connection of who sends a longer line, whatever the message is (max_control_line, 4096 by default).
// Most clients take no longer ones either. Beside the subject a line has where to reply to: ours, or on its way to a
// consumer "$JS.ACK." with the names of stream and consumer, of 255 characters at most.
const (
	maxControlLine = 4096
	lineOfConsumer = 1024
	lineOfReply    = 128 // a reply after our inbox, and sizes
)

// maxSubject is how long a subject may be where replies go to the inbox.
func maxSubject(inbox string) int {
	return min(maxControlLine-lineOfConsumer, maxControlLine-lineOfReply-len(inbox))
}

// covers says whether the pattern takes everything that the subject, which may be a pattern itself, stands for.
func covers(pattern, subject string) bool {
	for {
		p, patternRest, patternMore := strings.Cut(pattern, ".")
		s, subjectRest, subjectMore := strings.Cut(subject, ".")
		switch {
		case p == ">":
			return true
		case s == ">", p != "*" && p != s, patternMore != subjectMore:
			return false
		case !patternMore:
			return true
		}
		pattern, subject = patternRest, subjectRest
	}
}

// Overlap says whether a message could be of both subjects, each of which may be a pattern.
func Overlap(a, b string) bool {
	left, right := strings.Split(a, "."), strings.Split(b, ".")
	for i := 0; i < len(left) && i < len(right); i++ {
		switch l, r := left[i], right[i]; {
		case l == ">" || r == ">":
			return true
		case l != r && l != "*" && r != "*":
			return false
		}
	}
	return len(left) == len(right)
}

// Filters are those of the patterns that no other one covers, none twice.
func Filters(patterns ...string) (kept []string) {
	for _, pattern := range patterns {
		if !coveredByAny(kept, pattern) {
			kept = slices.DeleteFunc(kept, func(other string) bool { return covers(pattern, other) })
			kept = append(kept, pattern)
		}
	}
	return kept
}

func coveredByAny(patterns []string, subject string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return covers(pattern, subject) })
}

// knownStream is the stream as this sink knows it.
type knownStream struct {
	place      mark // after the last message that is known to be stored
	subjects   []string
	replaces   bool   // a newer message of a subject may take an older one's place
	keys       string // of a bucket: what its subjects start with
	maxMessage int    // bytes of headers and value; negative is no limit
	maxSubject int    // characters
	confirmed  int    // messages that were acknowledged since the sink was opened
}

// renew takes what a person can change meanwhile.
func (s *knownStream) renew(config *jetstream.StreamConfig) {
	s.subjects, s.maxMessage, s.replaces = config.Subjects, int(config.MaxMsgSize), config.MaxMsgsPerSubject > 0
}

// A bucket is a stream whose subjects are keys (ADR-8). It is the only log of its sink, so its sequence is the mark;
// what a newer value of the same key replaced is gone from the log's tail, and the newer one proves it.
const (
	bucketStream  = "KV_"
	bucketSubject = "$KV."

	headerOperation = "KV-Operation"
	operationDelete = "DEL"
)

// validKey says whether clients accept the key, which is what follows the bucket's name in a subject.
func validKey(key string) bool {
	return key != "" && !strings.ContainsFunc(key, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_/=.", r))
	})
}

// deletes says whether the message takes its key out of the bucket.
func (s *knownStream) deletes(m *sink.Message) bool {
	return s.keys != "" && m.Op == change.Deleted.String()
}

const (
	// headerExpected tells the server to refuse a message unless the stream ends at the sequence.
	headerExpected  = "Nats-Expected-Last-Sequence"
	longestSequence = len("18446744073709551615")
	maxHeaders      = 64<<10 - 1 // the server's limit
)

func (s *knownStream) objection(m *sink.Message, payload int64) (reason string, err error) {
	switch {
	case len(m.Destination) > s.maxSubject:
		return "invalid", fmt.Errorf("publish to a subject of %d characters, %.100s...: it may have %d, so that servers and clients take the line that it is in: leave {name} out of the subject",
			len(m.Destination), m.Destination, s.maxSubject)
	case !validSubject(m.Destination):
		return "invalid", fmt.Errorf("publish to subject %q: it has empty parts, wildcards, spaces or control characters",
			m.Destination)
	case !coveredByAny(s.subjects, m.Destination):
		return "invalid", fmt.Errorf("publish to subject %q: stream %s takes %q only", m.Destination, s.place.Stream, s.subjects)
	}
	// clients of a bucket would not accept it
	if key, found := strings.CutPrefix(m.Destination, s.keys); s.keys != "" && (!found || !validKey(key)) {
		return "invalid", fmt.Errorf("publish to subject %q: it is not a key of the bucket: a key has letters, digits, and -/_=. as in a path", m.Destination)
	}
	if err := checkHeaders(m); err != nil {
		return "invalid", err
	}
	headers := headerSize(m)
	size := headers + len(m.Value)
	if s.deletes(m) {
		size = headers // and little more, for a server that took the object before
	}
	switch {
	case int64(size) > payload:
		return "too_large", fmt.Errorf("publish %d bytes: the server takes %d: raise its max_payload", size, payload)
	case s.maxMessage >= 0 && size > s.maxMessage:
		return "too_large", fmt.Errorf("publish %d bytes: stream %s takes %d: raise its max_msg_size", size, s.place.Stream, s.maxMessage)
	case headers > maxHeaders:
		return "too_large", fmt.Errorf("publish %d bytes of headers: JetStream takes %d", headers, maxHeaders)
	}
	return "", nil
}

// checkHeaders refuses what the client library would change or drop without a word, and the names with which the
// server is told what to do.
func checkHeaders(m *sink.Message) error {
	for _, h := range m.Headers {
		if h.Name == "" || strings.ContainsFunc(h.Name, func(r rune) bool {
			return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
		}) {
			return fmt.Errorf("publish header %q: its name is not a token", h.Name)
		}
		if len(h.Name) >= 5 && strings.EqualFold(h.Name[:5], "Nats-") {
			return fmt.Errorf("publish header %q: its name is one of the server's", h.Name)
		}
		if strings.ContainsAny(h.Value, "\r\n") || strings.TrimSpace(h.Value) != h.Value {
			return fmt.Errorf("publish header %q: its value has line breaks, or spaces around it", h.Name)
		}
	}
	return nil
}

// headerSize is what the headers take, whatever the sequence: a message that fits today fits when it is sent again.
func headerSize(m *sink.Message) int {
	const line = len(": \r\n")
	size := len("NATS/1.0\r\n\r\n") + len(headerExpected) + longestSequence + line +
		len(sink.HeaderID) + len(m.ID) + line + len(sink.HeaderOp) + len(m.Op) + line +
		len(sink.HeaderResourceVersion) + len(m.ResourceVersion) + line
	for _, h := range m.Headers {
		size += len(h.Name) + len(h.Value) + line
	}
	return size
}

// outgoing is the message as it is sent, which the server refuses unless the stream ends at the expected sequence. The
// library writes spaces for line breaks, after which another header would begin.
func (s *knownStream) outgoing(m *sink.Message, expected uint64, reply string) *natsgo.Msg {
	out := &natsgo.Msg{Subject: m.Destination, Reply: reply, Data: m.Value, Header: natsgo.Header{}}
	for _, h := range m.Headers {
		out.Header.Add(h.Name, h.Value)
	}
	out.Header.Add(sink.HeaderID, m.ID)
	out.Header.Add(sink.HeaderOp, m.Op)
	out.Header.Add(sink.HeaderResourceVersion, m.ResourceVersion)
	out.Header.Set(headerExpected, strconv.FormatUint(expected, 10))
	if s.deletes(m) {
		out.Header.Add(headerOperation, operationDelete)
		out.Data = nil
	}
	return out
}
