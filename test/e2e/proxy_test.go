package e2e

import (
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// proxy stands between the exporter and a server, and does what networks do.
type proxy struct {
	listener net.Listener
	late     atomic.Int64 // the most nanoseconds that what the server sends may come later
	ended    chan struct{}
	closing  sync.Once
	wait     sync.WaitGroup
	turn     int // of the targets; the accepting goroutine's

	mu      sync.Mutex // guards the following
	targets []string   // that take connections by turns; one that is down is passed over
	moved   *sync.Cond // allowed or done changed
	open    map[net.Conn]bool
	allowed int // bytes that may still go to the server; negative is any number
	done    bool
	resets  int
}

// newProxy starts a proxy that passes everything on; it ends with the test.
func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	return newProxyAt(t, "127.0.0.1:0", target)
}

// newProxyAt is newProxy at an address.
func newProxyAt(t *testing.T, address string, targets ...string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{targets: targets, listener: listener, ended: make(chan struct{}), open: map[net.Conn]bool{}, allowed: -1}
	p.moved = sync.NewCond(&p.mu)
	p.wait.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// resetEvery resets all connections again and again until the returned function is called. The periods are random, so
// that some are too short to connect, and some long enough to get on even where everything is slow.
func (p *proxy) resetEvery(mean time.Duration) (stop func()) {
	stopped := make(chan struct{})
	p.wait.Go(func() {
		for {
			select {
			case <-time.After(time.Duration(rand.ExpFloat64() * float64(mean))):
				p.reset()
			case <-stopped:
				return
			case <-p.ended:
				return
			}
		}
	})
	return sync.OnceFunc(func() { close(stopped) })
}

// reset ends all connections as a network does that has forgotten them.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.open {
		_ = conn.(*net.TCPConn).SetLinger(0) // one that has ended needs no reset
		conn.Close()
	}
	p.resets += len(p.open) / 2
	clear(p.open)
}

// resetCount is how many connections were reset.
func (p *proxy) resetCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.resets
}

// allow lets so many bytes more go to the server, and then none; a negative number lifts the limit.
func (p *proxy) allow(bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allowed = bytes
	p.moved.Broadcast()
}

// exhausted says whether nothing may pass any more.
func (p *proxy) exhausted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.allowed == 0
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server := p.dial()
		if server == nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		p.open[client], p.open[server] = true, true
		p.mu.Unlock()
		p.wait.Go(func() { p.pass(server, client, p.admit) })
		p.wait.Go(func() { p.pass(client, server, p.lag) })
	}
}

// lead makes the targets those of the connections that come from now on.
func (p *proxy) lead(targets ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.targets = targets
}

// dial connects to the target whose turn it is, or to the next one that answers; nil is that none does.
func (p *proxy) dial() net.Conn {
	p.mu.Lock()
	targets := p.targets
	p.mu.Unlock()
	for range targets {
		target := targets[p.turn%len(targets)]
		p.turn++
		if server, err := net.Dial("tcp4", target); err == nil {
			return server
		}
	}
	return nil
}

// lag waits as long as what comes from the server may be late, and lets all of it pass; 0 is the proxy's end.
func (p *proxy) lag(n int) int {
	late := p.late.Load()
	if late == 0 {
		return n
	}
	select {
	case <-time.After(time.Duration(rand.Int64N(late))):
		return n
	case <-p.ended:
		return 0
	}
}

// pass copies what admit lets through.
func (p *proxy) pass(to, from net.Conn, admit func(int) int) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		for sent := 0; sent < n; {
			room := admit(n - sent)
			if room == 0 {
				return
			}
			if _, err := to.Write(buffer[sent : sent+room]); err != nil {
				return
			}
			sent += room
		}
	}
}

// admit waits until some bytes may go to the server, and says how many of those wanted; 0 is the proxy's end.
func (p *proxy) admit(wanted int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.allowed == 0 && !p.done {
		p.moved.Wait()
	}
	switch {
	case p.done:
		return 0
	case p.allowed < 0:
		return wanted
	}
	room := min(wanted, p.allowed)
	p.allowed -= room
	return room
}

// close may be called again.
func (p *proxy) close() {
	p.closing.Do(func() {
		p.listener.Close()
		close(p.ended)
		p.mu.Lock()
		p.done = true
		p.moved.Broadcast()
		p.mu.Unlock()
		p.reset()
		p.wait.Wait()
	})
}
