package harness

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// pieceBytes is how much goes to the server at once.
const pieceBytes = 8 << 10

// heldBytes is how much is on the way. It is more than one segment of the loopback interface, with less than which TCP
// waits for a timer again and again.
const heldBytes = 128 << 10

// lateBy is how late a piece may be for the next to make up for it: on a busy machine everything sleeps too long.
const lateBy = 20 * time.Millisecond

// Throttle passes connections on to a server, and no more bytes a second to it than speed.
type Throttle struct {
	target   string
	speed    int
	listener *net.TCPListener
	done     sync.WaitGroup

	mu   sync.Mutex
	open []net.Conn
}

// NewThrottle starts one in front of the NATS server of the URL. Close ends it.
func NewThrottle(url string, speed int) (*Throttle, error) {
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("listen for the slow sink: %w", err)
	}
	t := &Throttle{target: strings.TrimPrefix(url, "nats://"), speed: speed, listener: listener}
	t.done.Go(t.accept)
	return t, nil
}

// URL is where it listens.
func (t *Throttle) URL() string { return "nats://" + t.listener.Addr().String() }

func (t *Throttle) accept() {
	for {
		client, err := t.listener.AcceptTCP()
		if err != nil {
			return
		}
		_ = client.SetReadBuffer(heldBytes) // as it is otherwise, a slow network would hold more
		server, err := net.Dial("tcp4", t.target)
		if err != nil {
			client.Close()
			continue
		}
		t.mu.Lock()
		t.open = append(t.open, client, server)
		t.mu.Unlock()
		t.done.Go(func() { t.pass(server, client) })
		t.done.Go(func() {
			defer client.Close()
			_, _ = io.Copy(client, server) // it ends with either connection
		})
	}
}

// pass copies what the client sends, each piece when the one before has had its time.
func (t *Throttle) pass(server, client net.Conn) {
	defer server.Close()
	piece := make([]byte, pieceBytes)
	free := time.Now()
	for {
		n, err := client.Read(piece)
		if err != nil {
			return
		}
		if early := time.Now().Add(-lateBy); free.Before(early) {
			free = early
		}
		free = free.Add(time.Duration(n) * time.Second / time.Duration(t.speed))
		time.Sleep(time.Until(free))
		if _, err := server.Write(piece[:n]); err != nil {
			return
		}
	}
}

// Close ends it, and all connections.
func (t *Throttle) Close() {
	t.listener.Close()
	t.mu.Lock()
	for _, conn := range t.open {
		conn.Close()
	}
	t.mu.Unlock()
	t.done.Wait()
}
