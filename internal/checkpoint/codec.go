package checkpoint

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/kubecdc/kubecdc/internal/change"
)

// codec makes chunks.
type codec struct {
	*zipper
	rooms *sync.Pool                  // of *room; the runtime keeps what a pool lies in for two collections more
	forms func(*change.Stream) string // nil where nobody asks for them; set before the first use
}

func newCodec(z *zipper) codec { return codec{zipper: z, rooms: &sync.Pool{}} }

// headRoom is kept free before a chunk's records, for what they share.
const headRoom = 4 << 10

// encode makes the value of a chunk.
func (c *codec) encode(records []*change.Record) ([]byte, error) {
	in := c.room(records)
	defer c.giveBack(in)
	w := chunkWriter{forms: c.forms, streams: map[change.Stream]int{}, snapshots: map[*change.Snapshot]int{}, body: in.text[:headRoom]}
	for _, rec := range records {
		w.record(rec)
	}
	in.text = w.body
	raw, err := w.whole()
	if err != nil {
		return nil, err
	}
	in.value = binary.AppendUvarint(append(in.value[:0], chunkVersion), uint64(len(records)))
	in.value = binary.AppendUvarint(in.value, uint64(len(raw)))
	in.value, err = c.zip(in.value, raw)
	return bytes.Clone(in.value), err
}

// room is memory that chunks are made in, one after the other: it may be megabytes.
type room struct{ text, value []byte }

// room is for the records, and for what they share before them.
func (c *codec) room(records []*change.Record) *room {
	in, used := c.rooms.Get().(*room)
	if !used {
		in = &room{}
	}
	size := headRoom
	for _, rec := range records {
		size += rec.Size()
	}
	if cap(in.text) < size {
		in.text = make([]byte, size)
	}
	return in
}

// giveBack keeps the memory for the next chunk, unless few need so much.
func (c *codec) giveBack(in *room) {
	const most = 16 << 20
	if cap(in.text)+cap(in.value) <= most {
		c.rooms.Put(in)
	}
}

// whole is the chunk's text, of records that are written after the headRoom of body.
func (w *chunkWriter) whole() ([]byte, error) {
	shared, err := json.Marshal(w.shared)
	if err != nil {
		return nil, err
	}
	head := appendText(nil, string(shared))
	if len(head) > headRoom {
		return append(head, w.body[headRoom:]...), nil
	}
	text := w.body[headRoom-len(head):]
	copy(text, head)
	return text, nil
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
