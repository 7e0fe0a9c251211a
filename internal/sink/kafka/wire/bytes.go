package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/segmentio/kafka-go/protocol"
)

// maxFrame bounds an answer in bytes: more than any batch that a broker takes (socket.request.max.bytes is 100 MiB).
const maxFrame = 256 << 20

// output is a request in Kafka's encoding before flexible versions.
type output []byte

func (o output) int8(v int8) output   { return append(o, byte(v)) }
func (o output) int16(v int16) output { return binary.BigEndian.AppendUint16(o, uint16(v)) }
func (o output) int32(v int32) output { return binary.BigEndian.AppendUint32(o, uint32(v)) }
func (o output) int64(v int64) output { return binary.BigEndian.AppendUint64(o, uint64(v)) }

func (o output) text(v string) output { return append(o.int16(int16(len(v))), v...) }

// nullable writes "" as null.
func (o output) nullable(v string) output {
	if v == "" {
		return o.int16(-1)
	}
	return o.text(v)
}

// header begins a request (version 1 of the header). The size is written last, by finish.
func header(api protocol.ApiKey, version int16, serial int32, clientID string) output {
	return output(nil).int32(0).int16(int16(api)).int16(version).int32(serial).text(clientID)
}

// finish writes the size of a request of which more bytes follow.
func (o output) finish(more int) { binary.BigEndian.PutUint32(o, uint32(len(o)-4+more)) }

var errShort = errors.New("the answer is shorter than its contents")

// input reads an answer. After an error all values are zero.
type input struct {
	rest []byte
	err  error
}

func (i *input) take(n int) []byte {
	if i.err != nil || n < 0 || n > len(i.rest) {
		i.err, i.rest = errShort, nil
		return nil
	}
	taken := i.rest[:n:n]
	i.rest = i.rest[n:]
	return taken
}

func (i *input) int16() int16 {
	if b := i.take(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (i *input) int32() int32 {
	if b := i.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (i *input) int64() int64 {
	if b := i.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// text reads a string; null is "".
func (i *input) text() string {
	n := i.int16()
	if n <= 0 {
		return ""
	}
	return string(i.take(int(n)))
}

// bytes reads a block without copying it; null is nil.
func (i *input) bytes() []byte {
	n := i.int32()
	if n < 0 {
		return nil
	}
	return i.take(int(n))
}

// count reads the length of an array whose elements take at least size bytes each; null is 0.
func (i *input) count(size int) int {
	n := int(i.int32())
	if n > len(i.rest)/size {
		i.err, i.rest = errShort, nil
		return 0
	}
	return max(n, 0)
}

// frame is the body of an answer.
type frame struct {
	api  protocol.ApiKey
	body []byte
}

func (f *frame) ApiKey() protocol.ApiKey { return f.api }

// readFrame reads the answer to the request with a correlation id.
func readFrame(r io.Reader, api protocol.ApiKey, serial int32) (protocol.Message, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size < 4 || size > maxFrame {
		return nil, fmt.Errorf("the answer has %d bytes", size)
	}
	if got := int32(binary.BigEndian.Uint32(head[4:])); got != serial {
		return nil, fmt.Errorf("the answer is to request %d and not to %d", got, serial)
	}
	body := make([]byte, size-4)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, err
	}
	return &frame{api, body}, nil
}

func (o output) uvarint(v uint64) output { return binary.AppendUvarint(o, v) }

// compact writes a string as flexible versions have it (KIP-482).
func (o output) compact(v string) output { return append(o.uvarint(uint64(len(v))+1), v...) }

func (i *input) uvarint() int {
	v, n := binary.Uvarint(i.rest)
	if i.err != nil || n <= 0 || v > 1<<31 {
		i.err, i.rest = errShort, nil
		return 0
	}
	i.rest = i.rest[n:]
	return int(v)
}

// compactCount reads the length of an array or a string in flexible versions (KIP-482); null is 0.
func (i *input) compactCount() int {
	n := max(i.uvarint()-1, 0)
	if n > len(i.rest) {
		i.err, i.rest = errShort, nil
		return 0
	}
	return n
}

func (i *input) compact() []byte { return i.take(i.compactCount()) }

func (i *input) tags() {
	for range i.compactTags() {
		i.uvarint()
		i.take(i.uvarint())
	}
}

func (i *input) compactTags() int {
	n := i.uvarint()
	if n > len(i.rest) {
		i.err, i.rest = errShort, nil
		return 0
	}
	return n
}
