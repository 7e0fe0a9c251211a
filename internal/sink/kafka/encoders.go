package kafka

import (
	"runtime"
	"sync"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
)

// encoders make batches, as many at once as there are processors, in memory that is used again.
type encoders struct {
	codec  batch.Codec
	tuning *tuning
	free   chan *batch.Encoder // nil is one that is not made yet

	mu    sync.Mutex
	spare [][]byte // memory of batches that nobody reads any more
}

func newEncoders(codec batch.Codec, tuning *tuning) *encoders {
	e := &encoders{codec: codec, tuning: tuning, free: make(chan *batch.Encoder, runtime.GOMAXPROCS(0))}
	for range cap(e.free) {
		e.free <- nil
	}
	return e
}

// take waits for one that nobody uses.
func (e *encoders) take() (*batch.Encoder, error) {
	taken := <-e.free
	if taken != nil {
		return taken, nil
	}
	taken, err := batch.NewEncoder(e.codec)
	if err != nil {
		e.free <- nil
	}
	return taken, err
}

func (e *encoders) done(taken *batch.Encoder) {
	taken.Reset()
	e.free <- taken
}

// measure is the size of a batch with nothing but the atom.
func (e *encoders) measure(atom []sink.Message) (int, error) {
	taken, err := e.take()
	if err != nil {
		return 0, err
	}
	defer e.done(taken)
	var r record
	for i := range atom {
		taken.Add(r.fill(&atom[i]))
	}
	b, err := taken.Finish(nil, batch.Producer{})
	return len(b), err
}

// memory is for a batch.
func (e *encoders) memory() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(e.spare)
	if n == 0 {
		return nil
	}
	b := e.spare[n-1]
	e.spare = e.spare[:n-1]
	return b
}

// recycle takes the memory of a batch that was acknowledged, if a broker answered each attempt: a connection that was
// given up may still read it.
func (e *encoders) recycle(b []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.spare) < e.tuning.parallel/2 && cap(b) <= 2*e.tuning.bytes {
		e.spare = append(e.spare, b[:0])
	}
}

// record is a message as package batch wants it, made again for each one in the same memory.
type record struct {
	record  batch.Record
	headers []batch.Header
}

// fill gives a message without a key an empty one: it belongs to the same partition, and a compacted topic takes no
// record without a key.
func (r *record) fill(m *sink.Message) *batch.Record {
	r.headers = append(r.headers[:0],
		batch.Header{Name: sink.HeaderID, Value: m.ID},
		batch.Header{Name: sink.HeaderOp, Value: m.Op},
		batch.Header{Name: sink.HeaderResourceVersion, Value: m.ResourceVersion},
	)
	for _, h := range m.Headers {
		r.headers = append(r.headers, batch.Header(h))
	}
	key := m.Key
	if key == nil {
		key = []byte{}
	}
	r.record = batch.Record{Key: key, Value: m.Value, Headers: r.headers, Timestamp: max(0, m.Time.UnixMilli())}
	return &r.record
}

// sizeBound is at least what the message takes in a batch.
func sizeBound(m *sink.Message) int {
	const numbers = 64 // of a record and its first three headers
	n := numbers + len(sink.HeaderID) + len(sink.HeaderOp) + len(sink.HeaderResourceVersion) +
		len(m.ID) + len(m.Op) + len(m.ResourceVersion) + len(m.Key) + len(m.Value)
	for i := range m.Headers {
		n += 10 + len(m.Headers[i].Name) + len(m.Headers[i].Value)
	}
	return n
}

func together(a, b *sink.Message) bool {
	return a.ID == b.ID && a.Destination == b.Destination && string(a.Key) == string(b.Key)
}

// atomEnd is the end of the messages that belong together: those of one id, such as a delete and its tombstone. They
// are stored in one batch, so the log has all of them or none.
func atomEnd(messages []sink.Message, i int) int {
	end := i + 1
	for end < len(messages) && together(&messages[i], &messages[end]) {
		end++
	}
	return end
}
