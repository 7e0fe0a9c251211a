package nats

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/textproto"
	"strconv"
	"strings"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

// headerExpected makes the server refuse a message unless the stream ends at the sequence.
const headerExpected = "Nats-Expected-Last-Sequence"

// headerMessageID makes the server drop a message that it has already, for as long as it remembers.
const headerMessageID = "Nats-Msg-Id"

const maxHeaders = 64<<10 - 1 // the server's limit

func (s *knownStream) objection(m *sink.Message, payload int64) (reason string, err error) {
	switch {
	case len(m.Destination) > s.maxSubject:
		return "invalid", fmt.Errorf("publish to a subject of %d characters, %.100s...: it may have %d, so that servers and clients take the line that it is in: leave {name} out of the subject",
			len(m.Destination), m.Destination, s.maxSubject)
	case !validSubject(m.Destination):
		return "invalid", fmt.Errorf("publish to subject %q: it has empty parts, wildcards, spaces or control characters",
			m.Destination)
	case !coveredByAny(s.subjects, m.Destination):
		return "invalid", fmt.Errorf("publish to subject %q: stream %s takes %q only", m.Destination, s.name, s.subjects)
	}
	if err := cmp.Or(s.objectionToKey(m), checkHeaders(m)); err != nil {
		return "invalid", err
	}
	headers := headerSize(m)
	if s.shared {
		headers += len(headerMessageID) + base64.RawURLEncoding.EncodedLen(hashedBytes) + len("/") + len(m.ID) + len(tellingAgain) + longestNumber + len(": \r\n")
	}
	size := headers + len(m.Value)
	if s.deletes(m) {
		size = headers // and little more, for a server that took the object before
	}
	switch {
	case int64(size) > payload:
		return "too_large", fmt.Errorf("publish %d bytes: the server takes %d: raise its max_payload", size, payload)
	case s.maxMessage >= 0 && size > s.maxMessage:
		return "too_large", fmt.Errorf("publish %d bytes: stream %s takes %d: raise its max_msg_size", size, s.name, s.maxMessage)
	case headers > maxHeaders:
		return "too_large", fmt.Errorf("publish %d bytes of headers: JetStream takes %d", headers, maxHeaders)
	}
	return "", nil
}

// checkHeaders refuses what the client library would change or drop without a word, and the names with which the
// server is told what to do.
func checkHeaders(m *sink.Message) error {
	for _, h := range m.Headers {
		if h.Name == "" || strings.ContainsFunc(h.Name, badInName) {
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

func badInName(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
}

// headerSize is what the headers take, whatever the sequence: a message that fits today fits when it is sent again.
func headerSize(m *sink.Message) int {
	const line = len(": \r\n")
	size := len("NATS/1.0\r\n\r\n") + len(headerExpected) + longestNumber + line +
		len(sink.HeaderID) + len(m.ID) + line + len(sink.HeaderOp) + len(m.Op) + line +
		len(sink.HeaderResourceVersion) + len(m.ResourceVersion) + line
	for _, h := range m.Headers {
		size += len(h.Name) + len(h.Value) + line
	}
	return size
}

// envelope is a message with what the publish mode adds, made again for each one in the same memory: the outbox has
// copied all of it but the value when it returns.
type envelope struct{ conn.Message }

// fill makes it the message, without what the publish mode adds.
func (e *envelope) fill(s *knownStream, m *sink.Message, reply string) {
	e.Subject, e.Reply, e.Value = m.Destination, reply, m.Value
	e.Headers = append(e.Headers[:0], m.Headers...)
	e.set(sink.HeaderID, m.ID)
	e.set(sink.HeaderOp, m.Op)
	e.set(sink.HeaderResourceVersion, m.ResourceVersion)
	if s.deletes(m) {
		e.set(headerOperation, operationDelete)
		e.Value = nil
	}
}

// expect makes the server refuse the message unless the stream ends at the sequence.
func (e *envelope) expect(seq uint64) { e.set(headerExpected, strconv.FormatUint(seq, 10)) }

func (e *envelope) set(name, value string) {
	e.Headers = append(e.Headers, sink.Header{Name: name, Value: oneLine(value)})
}

// oneLine is the value with spaces instead of line breaks, after which another header would begin. The client library
// does the same.
func oneLine(value string) string {
	if strings.IndexByte(value, '\r') < 0 && strings.IndexByte(value, '\n') < 0 {
		return value
	}
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(textproto.TrimString(value))
}
