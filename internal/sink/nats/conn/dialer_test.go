package conn

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/kubecdc/kubecdc/test/natsserver"
)

// TestI7ASendEnds although a write of the library may come to its end meanwhile, in another goroutine, and then the
// library clears the deadline of the socket.
func TestI7ASendEnds(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close() // takes nothing
	m := &socket{Conn: ours, stop: func() bool { return true }}
	sent := make(chan error, 1)
	go func() {
		sent <- m.send(&net.Buffers{[]byte("PUB k8s.a 1\r\n"), []byte("x"), []byte(lineBreak)}, 300*time.Millisecond)
	}()
	clearing := time.NewTicker(time.Millisecond)
	defer clearing.Stop()
	for {
		select {
		case err := <-sent:
			if !os.IsTimeout(err) {
				t.Fatalf("got %v", err)
			}
			return
		case <-clearing.C:
			_ = m.SetWriteDeadline(time.Time{}) // fails when the socket was closed
		case <-within(t).Done():
			t.Fatal("the send waits for ever")
		}
	}
}

// A send leaves the library its own deadline.
func TestI7LibraryKeepsItsDeadline(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	m := &socket{Conn: ours, stop: func() bool { return true }}
	taken := make(chan error, 1)
	go func() {
		_, err := theirs.Read(make([]byte, 1))
		taken <- err
	}()
	if err := m.SetWriteDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if err := m.send(&net.Buffers{[]byte("x")}, limit); err != nil || <-taken != nil {
		t.Fatal(err)
	}
	if _, err := m.Write([]byte("CONNECT {}\r\n")); !os.IsTimeout(err) {
		t.Fatalf("got %v", err)
	}
}

// overheard is a socket that remembers what the client library does with it.
type overheard struct {
	net.Conn
	mu    *sync.Mutex
	calls *[]string // "write ...", "deadline", "no deadline"
}

func (o overheard) note(call string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*o.calls = append(*o.calls, call)
}

func (o overheard) Write(b []byte) (int, error) {
	o.note("write " + string(b))
	return o.Conn.Write(b)
}

func (o overheard) SetWriteDeadline(at time.Time) error {
	if at.IsZero() {
		o.note("no deadline")
	} else {
		o.note("deadline")
	}
	return o.Conn.SetWriteDeadline(at)
}

func (o overheard) Dial(network, address string) (net.Conn, error) {
	conn, err := net.DialTimeout(network, address, limit)
	o.Conn = conn
	return o, err
}

// TestLibraryWritesWholeOperations holds what Outbox and socket assume of the client library, so that another version
// of it which does otherwise is noticed: its first words are CONNECT, each write to the socket is whole operations of
// the protocol, and it sets a deadline before a write and clears it behind.
func TestLibraryWritesWholeOperations(t *testing.T) {
	s := natsserver.Start(t)
	socket := overheard{mu: new(sync.Mutex), calls: new([]string)}
	nc, err := natsgo.Connect(s.ClientURL(), natsgo.SetCustomDialer(socket), natsgo.FlusherTimeout(limit))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	subscription, err := nc.SubscribeSync("answers.>")
	if err != nil {
		t.Fatal(err)
	}
	body := bytes.Repeat([]byte("PUB a 1\r\n"), 3000)
	for i := range 200 {
		m := &natsgo.Msg{Subject: "k8s.a", Reply: "answers.1", Header: natsgo.Header{"a": {strconv.Itoa(i)}}, Data: body[:i*130]}
		if err := nc.PublishMsg(m); err != nil {
			t.Fatal(err)
		}
		if err := nc.PublishRequest("k8s.b", "answers.2", body[:i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := subscription.Unsubscribe(); err != nil || nc.Flush() != nil {
		t.Fatal(err, nc.LastError())
	}
	socket.mu.Lock()
	defer socket.mu.Unlock()
	var writes int
	for i, call := range *socket.calls {
		text, isWrite := bytes.CutPrefix([]byte(call), []byte("write "))
		if !isWrite {
			continue
		}
		writes++
		if first := bytes.HasPrefix(text, []byte("CONNECT ")); first != (writes == 1) {
			t.Errorf("write %d begins with %.20q", writes, text)
		}
		if err := wholeOperations(text); err != nil {
			t.Errorf("write %d: %v", writes, err)
		}
		timed := i > 0 && (*socket.calls)[i-1] == "deadline" && i+1 < len(*socket.calls) && (*socket.calls)[i+1] == "no deadline"
		if !timed && !bytes.HasPrefix(text, []byte("CONNECT ")) && !bytes.Equal(text, []byte("PING\r\n")) {
			t.Errorf("write %d, %.20q, has no deadline of its own", writes, text)
		}
	}
	if writes < 10 {
		t.Fatalf("%d writes were seen", writes)
	}
}

// wholeOperations says what is wrong with a text that is not one operation of a client after the other.
func wholeOperations(text []byte) error {
	for len(text) > 0 {
		line, rest, found := bytes.Cut(text, []byte(lineBreak))
		words := bytes.Fields(line)
		if !found || len(words) == 0 {
			return fmt.Errorf("it ends with %.40q", line)
		}
		verb := string(words[0])
		if !slices.Contains([]string{"CONNECT", "PING", "PONG", "SUB", "UNSUB", "PUB", "HPUB"}, verb) {
			return fmt.Errorf("%.40q is no operation", line)
		}
		if text = rest; verb == "PUB" || verb == "HPUB" {
			size, err := strconv.Atoi(string(words[len(words)-1]))
			if err != nil || len(text) < size+len(lineBreak) || !bytes.HasPrefix(text[size:], []byte(lineBreak)) {
				return fmt.Errorf("%.40q is cut off", line)
			}
			text = text[size+len(lineBreak):]
		}
	}
	return nil
}
