package httpserver

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// hall is a listener whose connections say where they are from.
type hall struct {
	net.Listener
	doors chan net.Conn
}

func (h *hall) Accept() (net.Conn, error) {
	conn, open := <-h.doors
	if !open {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (h *hall) Close() error   { return nil }
func (h *hall) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4zero, Port: 8080} }

type visitor struct {
	net.Conn
	from net.Addr
}

func (v visitor) RemoteAddr() net.Addr { return v.from }

// comes is a new connection from the address, as its other end sees it.
func (h *hall) comes(address string, port int) net.Conn {
	ours, theirs := net.Pipe()
	h.doors <- visitor{ours, &net.TCPAddr{IP: net.ParseIP(address), Port: port}}
	return theirs
}

// open serves what answers "ok" to everything, inside a bubble.
func openHall(t *testing.T) (*hall, *places, func()) {
	t.Helper()
	h := &hall{doors: make(chan net.Conn)}
	p := Bounded(h).(*places)
	server := newServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }))
	done := make(chan error)
	go func() { done <- server.Serve(p) }()
	return h, p, func() {
		close(h.doors)
		server.Close()
		<-done
	}
}

func asks(conn net.Conn) error {
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		return err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

// TestI6ConnectionsAreBounded: who opens thousands of connections costs a bounded number of places, and locks out
// neither probes of another address nor this host.
func TestI6ConnectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, p, stop := openHall(t)
		defer stop()
		probe := h.comes("10.0.0.1", 1)
		for n := range 4000 {
			h.comes(fmt.Sprintf("10.0.%d.%d", n%7, 2+n%11), n) // 77 pods of a tenant
			h.comes("10.0.9.9", n)                             // and one
		}
		for n := range 500 {
			h.comes("127.0.0.1", n)
		}
		synctest.Wait()
		_, here := p.taken(true)
		of, away := p.taken(false)
		if away != placesAway || here != placesHere {
			t.Errorf("%d and %d places are taken", away, here)
		}
		if most := slices.Max(slices.Collect(maps.Values(of))); most > placesOfOne {
			t.Errorf("one has %d places", most)
		}
		if err := asks(probe); err != nil {
			t.Errorf("the connection of a probe that was there before: %v", err)
		}
		for _, from := range []string{"10.0.0.1", "10.0.9.9", "127.0.0.1", "::1", "2001:db8::1"} {
			if err := asks(h.comes(from, 9999)); err != nil {
				t.Errorf("a new connection from %s: %v", from, err)
			}
		}
	})
}

// TestI6IdleConnectionsEnd, and those that never say what they want.
func TestI6IdleConnectionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, p, stop := openHall(t)
		defer stop()
		h.comes("10.0.0.1", 1)
		h.comes("10.0.0.2", 1)
		time.Sleep(headerTime + time.Second)
		synctest.Wait()
		if len(p.open) != 0 {
			t.Errorf("%d connections are there that said nothing", len(p.open))
		}
		kept := h.comes("10.0.0.2", 2)
		if asks(kept) != nil {
			t.Error("nobody is answered")
		}
		time.Sleep(idleTime - time.Second)
		if err := asks(kept); err != nil {
			t.Errorf("a connection that is used every two minutes ends: %v", err)
		}
		time.Sleep(idleTime + time.Second)
		synctest.Wait()
		if len(p.open) != 0 {
			t.Errorf("%d connections are there that nobody uses", len(p.open))
		}
	})
}
