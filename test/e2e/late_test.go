package e2e

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestI3LastWordsOfAKilledExporter: a slow network still has what an exporter had sent to the NATS server when it was
// killed, and brings it while the next one opens the stream, when it has opened it, or when it writes.
func TestI3LastWordsOfAKilledExporter(t *testing.T) {
	var network *limbo
	r := newRig(t, func(address string) string {
		network = newLimbo(t, address)
		return network.listener.Addr().String()
	})
	r.summon()
	r.writer.populate(t)
	r.exporter.start(t)
	r.file.awaitMore(t, r.exporter, 20)
	r.writer.start(t)
	random := rand.New(rand.NewPCG(seed(t), 7000))
	times := kills(t, 20, 8)
	for range times {
		r.exporter.process.Kill()
		time.Sleep(time.Duration(random.Int64N(int64(time.Second)))) // what happens meanwhile makes the first batch large
		network.hold()
		r.exporter.start(t)
		network.awaitHeld(t)
		r.exporter.process.Kill()
		atOnce := random.IntN(4) == 0
		network.releaseAt(atOnce)
		r.exporter.start(t)
		if atOnce {
			time.Sleep(time.Duration(random.Int64N(int64(500 * time.Millisecond)))) // as long as the network is slow
			network.release()
		}
		r.file.awaitMore(t, r.exporter, len(r.file.all(t))+1+random.IntN(20))
	}
	r.settle()
	r.exporter.stop(t)
	r.judge(false)
	t.Logf("%d kills; %d times the exporter began anew", times, strings.Count(r.exporter.log(t), "everything begins anew"))
}

// limbo is a network that can keep what was sent when its sender is dead.
type limbo struct {
	listener net.Listener
	ended    chan struct{}
	wait     sync.WaitGroup

	mu   sync.Mutex // guards the following
	open map[net.Conn]chan struct{}
	gate chan struct{} // of the connections on hold; nil is none
	held int           // bytes
	next bool          // the next message that passes releases what is on hold

	catches bool // the next message's connection comes on hold
}

// newLimbo passes everything on to the target; it ends with the test.
func newLimbo(t *testing.T, target string) *limbo {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &limbo{listener: listener, ended: make(chan struct{}), open: map[net.Conn]chan struct{}{}}
	l.wait.Go(func() { l.accept(target) })
	t.Cleanup(l.close)
	return l
}

// hold keeps what is sent on the connection that sends the next message, from that on, until it is released and the
// sender is dead.
func (l *limbo) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gate, l.held, l.catches = make(chan struct{}), 0, true
}

// release lets go what is on hold.
func (l *limbo) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gate != nil {
		close(l.gate)
		l.gate = nil
	}
}

// releaseAt makes the next message release what is on hold, which comes before it, or the caller.
func (l *limbo) releaseAt(caller bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next = !caller
}

// overtake brings what is on hold, if the sent bytes are those of the first message, before them.
func (l *limbo) overtake(sent []byte) {
	l.mu.Lock()
	overtakes := l.next && l.gate != nil && isMessage(sent)
	l.mu.Unlock()
	if overtakes {
		l.release()
		time.Sleep(20 * time.Millisecond) // so much faster are the old ways
	}
}

// awaitHeld waits until something is on hold.
func (l *limbo) awaitHeld(t *testing.T) {
	t.Helper()
	eventually(t, deliveryLimit, "the network has something", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.held > 0
	})
}

func (l *limbo) accept(target string) {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp4", target)
		if err != nil {
			client.Close()
			continue
		}
		l.mu.Lock()
		l.open[client] = nil
		l.mu.Unlock()
		l.wait.Go(func() { l.send(server.(*net.TCPConn), client) })
		l.wait.Go(func() {
			_, _ = io.Copy(client, server)
			_, _ = io.Copy(io.Discard, server) // the client is dead, and the server is not to know
			server.Close()
			client.Close()
		})
	}
}

// send passes on what the client sends, and keeps what is on hold.
func (l *limbo) send(server *net.TCPConn, client net.Conn) {
	defer func() { _ = server.CloseWrite() }()
	var late []byte
	buffer := make([]byte, 16<<10)
	for {
		n, err := client.Read(buffer)
		gate := l.keep(client, buffer[:n])
		if gate == nil {
			l.overtake(buffer[:n])
		}
		if gate != nil {
			late = append(late, buffer[:n]...)
		} else if _, failed := server.Write(buffer[:n]); failed != nil {
			return
		}
		if err == nil {
			continue
		}
		if gate != nil {
			select {
			case <-gate:
				_, _ = server.Write(late)
			case <-l.ended:
			}
		}
		l.mu.Lock()
		delete(l.open, client)
		l.mu.Unlock()
		return
	}
}

// keep is the gate of the connection, nil where it is not on hold.
func (l *limbo) keep(client net.Conn, sent []byte) chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.catches && isMessage(sent) {
		l.open[client], l.catches = l.gate, false
	}
	if l.open[client] != nil {
		l.held += len(sent)
	}
	return l.open[client]
}

// isMessage says whether the bytes to a NATS server have a message for a stream: questions have no headers.
func isMessage(sent []byte) bool { return bytes.Contains(sent, []byte("HPUB ")) }

func (l *limbo) close() {
	l.listener.Close()
	close(l.ended)
	l.mu.Lock()
	for client := range l.open {
		client.Close()
	}
	l.mu.Unlock()
	l.wait.Wait()
}
