package encode

import (
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// memory is what the messages of a batch share.
type memory struct {
	buffer  []byte
	headers []sink.Header
	texts   texts // of the message that is being made
}

// maxKept is the largest buffer, in bytes, that an encoder keeps for the next batch.
const maxKept = 8 << 20

// take returns what was appended to the buffer.
func (m *memory) take(buffer []byte) []byte {
	start := len(m.buffer)
	m.buffer = buffer
	return buffer[start:len(buffer):len(buffer)]
}

// key sets the message's key to what is appended for the record. The gap of an object is no state of it, and must not
// take the place of one in a compacted topic: it has a key of its own, in the object's partition.
func (m *memory) key(msg *sink.Message, rec *change.Record, ofObject, ofGap func([]byte, *change.Record) []byte) {
	msg.Key = m.take(ofObject(m.buffer, rec))
	if rec.Op == change.Gap && rec.Key.Name != "" {
		msg.Partition, msg.Key = msg.Key, m.take(ofGap(m.buffer, gapOf(rec)))
	}
}
