package nats

import (
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
}

func startProxy(t testing.TB, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, target: target, open: map[net.Conn]bool{}}
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
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil || !p.mayPass() {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
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
	conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
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
	p.mu.Lock()
	p.ended = true
	p.moved.Broadcast()
	p.mu.Unlock()
	p.cut()
	p.wait.Wait()
}
