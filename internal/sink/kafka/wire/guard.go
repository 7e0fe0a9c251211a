package wire

import (
	"encoding/binary"
	"io"
	"net"
	"time"
)

// connectTimeout is for a connection with TLS, and again for the login on it: a dead broker costs that much whenever it
// is drawn.
const connectTimeout = 2 * time.Second

// maxFirstFrame is far above the size of the first answer on a connection in bytes, the list of a broker's requests,
// and far below what the first bytes of other protocols mean as a length.
const maxFirstFrame = 64 << 10

// guarded is a connection on which nothing is believed before the other side has proven that it is a Kafka broker.
// kafka-go takes any four bytes for a length and any four for a count, and makes room for it: an HTTP server's answer
// would cost gigabytes.
type guarded struct {
	net.Conn
	raw     net.Conn // below TLS
	address string
	tls     bool

	proven  bool
	failed  error  // of a read, or of the proof
	first   []byte // of the first frame: what is not read yet
	bounded bool   // the transport has set a deadline
	dropped func() // told once, when the transport closes it; nil then
}

// Read proves the first frame before it hands it out. Without a deadline, as kafka-go logs in, it waits for
// connectTimeout. An error is for good: kafka-go reads on after one.
func (g *guarded) Read(p []byte) (int, error) {
	if g.failed == nil {
		g.failed = g.bound()
	}
	if g.failed == nil && !g.proven {
		g.failed = g.prove()
		g.proven = true
	}
	if g.failed != nil {
		return 0, g.failed
	}
	if len(g.first) > 0 {
		n := copy(p, g.first)
		g.first = g.first[n:]
		return n, nil
	}
	n, err := g.Conn.Read(p)
	g.failed = err
	return n, err
}

func (g *guarded) Write(p []byte) (int, error) {
	if err := g.bound(); err != nil {
		return 0, err
	}
	return g.Conn.Write(p)
}

func (g *guarded) bound() error {
	if g.bounded {
		return nil
	}
	return g.Conn.SetDeadline(time.Now().Add(connectTimeout))
}

// SetDeadline is called by whoever reads and writes, not at the same time.
func (g *guarded) SetDeadline(t time.Time) error {
	g.bounded = !t.IsZero()
	return g.Conn.SetDeadline(t)
}

// Close is called by the transport, once or more.
func (g *guarded) Close() error {
	if dropped := g.dropped; dropped != nil {
		g.dropped = nil
		dropped()
	}
	return g.Conn.Close()
}

// prove reads the first frame whole. It must be the answer to ApiVersions version 0, which is what kafka-go asks first:
// size, correlation id 1, error code, and a count that fits the size.
func (g *guarded) prove() error {
	var head [4]byte
	if _, err := io.ReadFull(g.Conn, head[:]); err != nil {
		return firstReadError(g.address, g.tls, err)
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxFirstFrame {
		return g.foreign(head[:])
	}
	frame := make([]byte, 4+size)
	copy(frame, head[:])
	if _, err := io.ReadFull(g.Conn, frame[4:]); err != nil {
		return firstReadError(g.address, g.tls, err)
	}
	const header, entry = 4 + 2 + 4, 6
	if size < header || binary.BigEndian.Uint32(frame[4:]) != 1 || uint64(binary.BigEndian.Uint32(frame[10:]))*entry > uint64(size-header) {
		return g.foreign(frame[:min(len(frame), 64)])
	}
	g.first = frame
	return nil
}

// foreign reads a little more of what is no Kafka, to be able to tell what it is.
func (g *guarded) foreign(seen []byte) error {
	more := make([]byte, 64)
	n, err := g.Conn.Read(more)
	if err != nil {
		n = 0 // what was seen has to do
	}
	return notKafka(g.address, append(seen, more[:n]...))
}
