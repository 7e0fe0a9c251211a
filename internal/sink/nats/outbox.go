package nats

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"time"

	natsgo "github.com/nats-io/nats.go"
)

// burst is how many bytes the outbox sends with one system call, or a message more.
const burst = 256 << 10

// outbox sends messages, in their order. The client library would copy every value, and make the headers of a map,
// which costs more than all else that this sink does but for the system calls. So the outbox writes into the library's
// socket itself: many messages with one call, and the values from where they are. What the library writes at once is
// whole operations of the protocol, too, and a socket takes one write after the other, so neither cuts into the
// other's. Each keeps its own deadline (mortal.SetWriteDeadline). A test holds what is assumed of the library
// (TestLibraryWritesWholeOperations). Where the socket carries TLS or a websocket, the library sends.
type outbox struct {
	nc      *natsgo.Conn
	socket  *mortal // nil: the library sends
	payload int64   // bytes of headers and value that the server takes
	within  time.Duration

	parts net.Buffers // what is not sent yet, and of heads what is before rest
	heads []byte
	rest  int
	bytes int // in parts

	message natsgo.Msg // for the library, made again for each one: it has copied it when it returns
	values  []string
}

// reset makes it one for the connection as it is now. What was not sent is forgotten.
func (o *outbox) reset(c *connection) {
	o.nc, o.socket, o.payload, o.within = c.nc, c.plain(), c.nc.MaxPayload(), c.flush
	o.clear()
}

func (o *outbox) clear() {
	clear(o.parts)
	o.parts, o.heads, o.rest, o.bytes = o.parts[:0], o.heads[:0], 0, 0
}

// post sends the message or keeps it for flush. Its value must stay as it is until then.
func (o *outbox) post(e *envelope) error {
	if o.socket == nil {
		return o.nc.PublishMsg(o.libraryMessage(e))
	}
	headers := e.sizeOfHeaders()
	// what comes before it is to be stored, or nobody knows the one to blame
	if int64(headers+len(e.value)) > o.payload {
		return cmp.Or(o.flush(), natsgo.ErrMaxPayload)
	}
	o.heads = e.appendHead(o.heads, headers)
	o.parts = append(o.parts, o.heads[o.rest:], e.value)
	o.bytes += len(o.heads) - o.rest + len(e.value)
	o.rest = len(o.heads)
	o.heads = append(o.heads, lineBreak...)
	if o.bytes < burst {
		return nil
	}
	return o.flush()
}

// flush sends what is left. Before it, waiting for an answer is in vain.
func (o *outbox) flush() error {
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
func (e *envelope) sizeOfHeaders() int {
	size := len(headerLine) + len(lineBreak)
	for _, h := range e.headers {
		size += len(h.Name) + len(headerColon) + len(h.Value) + len(lineBreak)
	}
	return size
}

// appendHead appends what comes before the value in the protocol: "HPUB subject reply size-of-headers size-of-all" and
// the headers.
func (e *envelope) appendHead(dst []byte, headers int) []byte {
	dst = append(append(append(dst, "HPUB "...), e.subject...), ' ')
	if e.reply != "" {
		dst = append(append(dst, e.reply...), ' ')
	}
	dst = append(strconv.AppendInt(dst, int64(headers), 10), ' ')
	dst = append(strconv.AppendInt(dst, int64(headers+len(e.value)), 10), lineBreak...)
	dst = append(dst, headerLine...)
	for _, h := range e.headers {
		dst = append(append(append(append(dst, h.Name...), headerColon...), h.Value...), lineBreak...)
	}
	return append(dst, lineBreak...)
}

// libraryMessage is the message as the library wants it.
func (o *outbox) libraryMessage(e *envelope) *natsgo.Msg {
	if o.message.Header == nil {
		o.message.Header = natsgo.Header{}
	}
	clear(o.message.Header)
	o.values = o.values[:0]
	for _, h := range e.headers {
		if old, twice := o.message.Header[h.Name]; twice {
			o.message.Header[h.Name] = append(old, h.Value)
			continue
		}
		o.values = append(o.values, h.Value)
		end := len(o.values)
		o.message.Header[h.Name] = o.values[end-1 : end : end]
	}
	o.message.Subject, o.message.Reply, o.message.Data = e.subject, e.reply, e.value
	return &o.message
}
