package nats

import (
	"bytes"
	"net"
	"sync"
	"testing"
	"time"
)

// proxy stands between a sink and its server, and does what networks do.
type proxy struct {
	listener net.Listener
	target   string
	wait     sync.WaitGroup

	mu      sync.Mutex
	moved   *sync.Cond // stalled or ended changed
	stalled bool
	ended   bool
	open    map[net.Conn]bool
	gate    chan struct{}
	held    map[net.Conn]chan struct{} // the gate of both ends of connections on hold
	late    []byte                     // what came on one of them last, and all before it
}

func startProxy(t testing.TB, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, target: target, open: map[net.Conn]bool{}, held: map[net.Conn]chan struct{}{}}
	p.moved = sync.NewCond(&p.mu)
	p.wait.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

func (p *proxy) url() string { return "nats://" + p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		p.open[client], p.open[server] = true, true
		p.mu.Unlock()
		p.wait.Go(func() { p.copy(server, client) })
		p.wait.Go(func() { p.copy(client, server) })
	}
}

func (p *proxy) copy(to, from net.Conn) {
	defer p.drop(to)
	defer p.drop(from)
	var late []byte // what came on a connection on hold
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		hold := p.holds(from)
		switch {
		case hold != nil:
			late = append(late, buffer[:n]...)
			p.note(late)
			if err != nil && len(late) > 0 {
				<-hold
				_, _ = to.Write(late)
			}
		case err == nil && p.mayPass():
			_, err = to.Write(buffer[:n])
		}
		if err != nil || hold == nil && !p.mayPass() {
			return
		}
	}
}

func (p *proxy) holds(conn net.Conn) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held[conn]
}

// hold keeps what is sent on the connections that exist now. On release it arrives, whether its sender is still there
// or not.
func (p *proxy) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gate = make(chan struct{})
	for conn := range p.open {
		p.held[conn] = p.gate
	}
}

func (p *proxy) note(late []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = late
	p.moved.Broadcast()
}

// awaitHeld returns when a connection on hold has the text.
func (p *proxy) awaitHeld(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !bytes.Contains(p.late, []byte(text)) && !p.ended {
		p.moved.Wait()
	}
}

func (p *proxy) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gate != nil {
		close(p.gate)
		p.gate = nil
		clear(p.held)
	}
}

func (p *proxy) mayPass() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.stalled && !p.ended {
		p.moved.Wait()
	}
	return !p.ended
}

func (p *proxy) drop(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[conn] != nil {
		return // the other direction still needs it
	}
	conn.Close()
	delete(p.open, conn)
}

// cut resets all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.open {
		_ = conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
	}
}

// cutOften resets all connections n times. It ends with the proxy at the latest.
func (p *proxy) cutOften(n int) (done <-chan struct{}) {
	ended := make(chan struct{})
	p.wait.Go(func() {
		defer close(ended)
		ticker := time.NewTicker(30 * time.Millisecond)
		defer ticker.Stop()
		for range n {
			<-ticker.C
			p.cut()
		}
	})
	return ended
}

func (p *proxy) stall() (resume func()) {
	p.set(true)
	return func() { p.set(false) }
}

func (p *proxy) set(stalled bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled = stalled
	p.moved.Broadcast()
}

func (p *proxy) close() {
	p.listener.Close()
	p.release()
	p.mu.Lock()
	p.ended = true
	p.moved.Broadcast()
	p.mu.Unlock()
	p.cut()
	p.wait.Wait()
}
