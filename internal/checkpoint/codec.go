package checkpoint

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/change"
)

// codec makes chunks.
type codec struct {
	*zipper
	forms func(*change.Stream) string // nil where nobody asks for them; set before the first use
}

// encode makes the value of a chunk.
func (c *codec) encode(records []*change.Record) ([]byte, error) {
	w := chunkWriter{forms: c.forms, streams: map[change.Stream]int{}, snapshots: map[*change.Snapshot]int{}}
	for _, rec := range records {
		w.record(rec)
	}
	head, err := json.Marshal(w.shared)
	if err != nil {
		return nil, err
	}
	raw := append(appendText(make([]byte, 0, len(head)+len(w.body)+8), string(head)), w.body...)
	value := binary.AppendUvarint(append(make([]byte, 0, len(raw)/3+32), chunkVersion), uint64(len(records)))
	value = binary.AppendUvarint(value, uint64(len(raw)))
	return c.zip(value, raw)
}

// decode appends the chunk's records to dst. They share memory.
func (c *codec) decode(dst []*change.Record, value []byte) ([]*change.Record, error) {
	size, n, err := chunkSize(value)
	if err != nil {
		return dst, err
	}
	frame := value[1:]
	for range 2 {
		_, width := binary.Uvarint(frame)
		frame = frame[width:]
	}
	raw, err := c.unzip(make([]byte, 0, size), frame)
	if err != nil {
		return dst, fmt.Errorf("a chunk: %w", err)
	}
	r := chunkReader{rest: raw}
	head := r.text()
	if r.err == nil {
		r.err = json.Unmarshal([]byte(head), &r.shared)
	}
	for range n {
		dst = append(dst, r.record())
	}
	if r.err != nil || len(r.rest) > 0 {
		return dst, fmt.Errorf("a chunk of %d records: %w", n, errValue)
	}
	return dst, nil
}
