package conn

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// dialer makes sockets that end with life. Without it, a socket whose other end takes nothing would keep the library,
// and with it Write and Close, for as long as it has patience.
type dialer struct {
	life    context.Context
	timeout time.Duration
	last    atomic.Pointer[socket] // the newest socket
}

// Dial is what the client library calls.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	plain := net.Dialer{Timeout: d.timeout}
	raw, err := plain.DialContext(d.life, network, address)
	if err != nil {
		return nil, err
	}
	s := &socket{Conn: raw, stop: context.AfterFunc(d.life, func() { _ = raw.Close() })}
	d.last.Store(s)
	return s, nil
}

type socket struct {
	net.Conn
	stop  func() bool
	plain atomic.Bool // what is written is NATS's protocol, neither TLS nor a websocket

	writing sync.Mutex // held for a write, guards the following
	spoke   bool
}

// Write is what the client library calls. Its first words are CONNECT, or they are of another protocol.
func (s *socket) Write(b []byte) (int, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if !s.spoke {
		s.spoke = true
		s.plain.Store(bytes.HasPrefix(b, []byte("CONNECT ")))
	}
	return s.Conn.Write(b)
}

// send writes all parts, which it uses up, with nothing of the library's between them. A socket that takes nothing
// for so long is dead. One that did not take all is closed, so that the library makes another. It has no deadline: the
// library sets and clears that around each of its writes, also while another one goes on.
func (s *socket) send(parts *net.Buffers, within time.Duration) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	dead := time.AfterFunc(within, func() { _ = s.Conn.Close() })
	_, err := parts.WriteTo(s.Conn)
	if inTime := dead.Stop(); err != nil {
		_ = s.Close() // it may be closed already
		if !inTime {
			return os.ErrDeadlineExceeded
		}
	}
	return err
}

func (s *socket) Close() error {
	s.stop()
	return s.Conn.Close()
}

// burst is how many bytes the outbox sends with one system call, or a message more.
const burst = 256 << 10

// Message is what the outbox sends. It has copied all of it but the value when Post returns.
type Message struct {
	Subject, Reply string
	Headers        []sink.Header
	Value          []byte
}

// Outbox sends messages, in their order: many with one call, and the values from where they are. What the library
// writes at once is whole operations of the protocol, too, and a socket takes one write after the other, so neither
// cuts into the other's.
type Outbox struct {
	nc      *natsgo.Conn
	socket  *socket // nil: the library sends
	payload int64   // bytes of headers and value that the server takes
	within  time.Duration

	parts net.Buffers // what is not sent yet, and of heads what is before rest
	heads []byte
	rest  int
	bytes int // in parts
}

// Direct says whether messages go past the library.
func (o *Outbox) Direct() bool { return o.socket != nil }

func (o *Outbox) clear() {
	clear(o.parts)
	o.parts, o.heads, o.rest, o.bytes = o.parts[:0], o.heads[:0], 0, 0
}

// Post sends the message or keeps it for Flush. Its value must stay as it is until then.
func (o *Outbox) Post(m *Message) error {
	if o.socket == nil {
		header := natsgo.Header{}
		for _, h := range m.Headers {
			header[h.Name] = append(header[h.Name], h.Value)
		}
		return o.nc.PublishMsg(&natsgo.Msg{Subject: m.Subject, Reply: m.Reply, Header: header, Data: m.Value})
	}
	headers := m.sizeOfHeaders()
	// what comes before it is to be stored, or nobody knows the one to blame
	if int64(headers+len(m.Value)) > o.payload {
		return cmp.Or(o.Flush(), natsgo.ErrMaxPayload)
	}
	o.heads = m.appendHead(o.heads, headers)
	o.parts = append(o.parts, o.heads[o.rest:], m.Value)
	o.bytes += len(o.heads) - o.rest + len(m.Value)
	o.rest = len(o.heads)
	o.heads = append(o.heads, lineBreak...)
	if o.bytes < burst {
		return nil
	}
	return o.Flush()
}

// Flush sends what is left. Before it, waiting for an answer is in vain.
func (o *Outbox) Flush() error {
	if len(o.parts) == 0 {
		return nil
	}
	o.parts = append(o.parts, o.heads[o.rest:])
	unsent := o.parts // is used up
	err := o.socket.send(&unsent, o.within)
	o.clear()
	if err != nil {
		return fmt.Errorf("send messages: %w", err)
	}
	return nil
}

const (
	lineBreak   = "\r\n"
	headerLine  = "NATS/1.0\r\n" // before the headers
	headerColon = ": "
)

// sizeOfHeaders is what the headers take as they are sent, in bytes.
func (m *Message) sizeOfHeaders() int {
	size := len(headerLine) + len(lineBreak)
	for _, h := range m.Headers {
		size += len(h.Name) + len(headerColon) + len(h.Value) + len(lineBreak)
	}
	return size
}

// appendHead appends what comes before the value in the protocol: "HPUB subject reply size-of-headers size-of-all"
// and the headers.
func (m *Message) appendHead(dst []byte, headers int) []byte {
	dst = append(append(append(dst, "HPUB "...), m.Subject...), ' ')
	if m.Reply != "" {
		dst = append(append(dst, m.Reply...), ' ')
	}
	dst = append(strconv.AppendInt(dst, int64(headers), 10), ' ')
	dst = append(strconv.AppendInt(dst, int64(headers+len(m.Value)), 10), lineBreak...)
	dst = append(dst, headerLine...)
	for _, h := range m.Headers {
		dst = append(append(append(append(dst, h.Name...), headerColon...), h.Value...), lineBreak...)
	}
	return append(dst, lineBreak...)
}
