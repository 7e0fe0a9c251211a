package nats

import (
	"bytes"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// proxy stands between a sink and its server, and does what networks do.
type proxy struct {
	listener net.Listener
	target   string
	wait     sync.WaitGroup

	mu      sync.Mutex
	moved   *sync.Cond // stalled, ended or what is on hold changed
	stalled bool
	ended   bool
	open    map[net.Conn]bool
	gate    chan struct{}           // closed when what is on hold may go
	letGo   func()                  // closes gate, once
	held    map[*net.TCPConn][]byte // what came on connections on hold, which they are until their end
	behind  string                  // whoever sends it is on hold from then on
}

func startProxy(t testing.TB, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	p := &proxy{
		listener: listener, target: target, open: map[net.Conn]bool{},
		gate: make(chan struct{}), held: map[*net.TCPConn][]byte{},
	}
	p.letGo = sync.OnceFunc(func() { close(p.gate) })
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
		p.wait.Go(func() { p.join(client.(*net.TCPConn), server.(*net.TCPConn)) })
	}
}

// join passes on what comes from either end. Both are closed when one has ended; on hold, when both have.
func (p *proxy) join(client, server *net.TCPConn) {
	var both sync.WaitGroup
	both.Go(func() { p.copy(server, client) })
	both.Go(func() { p.copy(client, server) })
	both.Wait()
	p.drop(client, server)
}

func (p *proxy) copy(to, from *net.TCPConn) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		gate := p.keep(from, buffer[:n])
		switch {
		case gate != nil && err != nil:
			<-gate
			p.bring(to, from)
			return
		case gate != nil:
			continue
		case err == nil && p.mayPass():
			_, err = to.Write(buffer[:n])
		}
		if err != nil || !p.mayPass() {
			from.Close()
			to.Close()
			return
		}
	}
}

// hold keeps what is sent on the connections that exist now. It arrives when it is released and its sender is gone,
// whichever is first.
func (p *proxy) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.open {
		if tcp := conn.(*net.TCPConn); p.held[tcp] == nil {
			p.held[tcp] = []byte{}
		}
	}
}

// holdBehind lets the text pass, with what is sent together with it, and keeps what its sender sends after that.
func (p *proxy) holdBehind(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.behind = text
}

// keep is the gate of what was sent, nil if it is not on hold.
func (p *proxy) keep(from *net.TCPConn, sent []byte) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[from] == nil {
		if p.behind != "" && bytes.Contains(sent, []byte(p.behind)) {
			p.held[from], p.behind = []byte{}, ""
		}
		return nil
	}
	p.held[from] = append(p.held[from], sent...)
	p.moved.Broadcast()
	return p.gate
}

// bring sends what was on hold. The receiver is to read all of it before it notices that nobody is there any more.
func (p *proxy) bring(to, from *net.TCPConn) {
	p.mu.Lock()
	late := p.held[from]
	p.mu.Unlock()
	_, _ = to.Write(late)
	_ = to.CloseWrite()
}

// awaitHeld returns when a connection on hold has the text.
func (p *proxy) awaitHeld(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	has := func(late []byte) bool { return bytes.Contains(late, []byte(text)) }
	for !slices.ContainsFunc(slices.Collect(maps.Values(p.held)), has) && !p.ended {
		p.moved.Wait()
	}
}

// release lets go what is on hold, and returns when the server has read all of it, and closed the connections.
func (p *proxy) release(t *testing.T) {
	t.Helper()
	p.letGo()
	for ctx := within(t); p.holds(); sink.Pause(ctx, time.Millisecond, nil) {
		if ctx.Err() != nil {
			t.Fatal("the server did not read what was on hold to its end, or who sent it is still there")
		}
	}
}

func (p *proxy) holds() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.held) > 0
}

func (p *proxy) mayPass() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.stalled && !p.ended {
		p.moved.Wait()
	}
	return !p.ended
}

func (p *proxy) drop(ends ...*net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range ends {
		conn.Close()
		delete(p.open, conn)
		delete(p.held, conn)
	}
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
	p.letGo()
	p.mu.Lock()
	p.ended = true
	p.moved.Broadcast()
	p.mu.Unlock()
	p.cut()
	p.wait.Wait()
}
