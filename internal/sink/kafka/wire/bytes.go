package wire

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxFrame bounds an answer in bytes: more than any batch that a broker takes (socket.request.max.bytes is 100 MiB).
const maxFrame = 256 << 20

// readAnswer reads the answer to the request with a correlation id.
func readAnswer[Answer kmsg.Response](r io.Reader, serial int32, answer Answer) (Answer, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return answer, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size < 4 || size > maxFrame {
		return answer, fmt.Errorf("the answer has %d bytes", size)
	}
	if got := int32(binary.BigEndian.Uint32(head[4:])); got != serial {
		return answer, fmt.Errorf("the answer is to request %d and not to %d", got, serial)
	}
	body := kbin.Reader{Src: make([]byte, size-4)}
	if _, err := io.ReadFull(r, body.Src); err != nil {
		return answer, err
	}
	if answer.IsFlexible() {
		kmsg.SkipTags(&body) // of the header
	}
	if err := answer.ReadFrom(body.Src); err != nil {
		return answer, fmt.Errorf("the answer is shorter than its contents: %w", err)
	}
	return answer, nil
}
