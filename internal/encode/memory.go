package encode

import "github.com/kubecdc/kubecdc/internal/sink"

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
