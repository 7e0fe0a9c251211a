package source

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// ServeHTTP is http.Handler's: the server as one reaches it over connections.
func (s *server) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	answer := s.reply(request)
	defer answer.Body.Close()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(answer.StatusCode)
	w.(http.Flusher).Flush()
	buf := make([]byte, 1<<10)
	for {
		n, err := answer.Body.Read(buf)
		if _, failed := w.Write(buf[:n]); err != nil || failed != nil {
			return
		}
		w.(http.Flusher).Flush()
	}
}

// pipes is a net.Listener of connections in memory.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	over  chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), over: make(chan struct{})} }

// Accept is net.Listener's.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.over:
		return nil, io.EOF
	}
}

// Close is net.Listener's.
func (p *pipes) Close() error { p.once.Do(func() { close(p.over) }); return nil }

// Addr is net.Listener's.
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

func (p *pipes) dial() (net.Conn, error) {
	ours, theirs := net.Pipe()
	p.conns <- theirs
	return ours, nil
}

// TestI4NoTurnsOfABalancerHideTheServerThatRemembers: it leads connections to its servers by turns. What is asked
// between two watches must not take as many of them each time as there are servers.
func TestI4NoTurnsOfABalancerHideTheServerThatRemembers(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		for _, servers := range []int{2, 3} {
			t.Run(fmt.Sprintf("%d servers, HTTP/2 %t", servers, http2), func(t *testing.T) {
				play(t, 100, func(r *rig) {
					r.has("lake", 90)
					all := make([]*pipes, servers)
					for i := range all {
						all[i] = newPipes()
						one := newServer(100)
						one.servers = servers
						one.do("a 91")
						if i < servers-1 {
							one.oldest = 95
						}
						web := httptest.NewUnstartedServer(one)
						web.Listener.Close()
						web.Listener, web.EnableHTTP2 = all[i], http2
						web.Config.ErrorLog = nil
						if http2 {
							web.StartTLS()
						} else {
							web.Start()
						}
						defer web.Close()
						defer one.end()
					}
					turn := 0
					var mu sync.Mutex
					r.rest = &rest.Config{
						Host: "http://balancer", Dial: func(context.Context, string, string) (net.Conn, error) {
							mu.Lock()
							defer mu.Unlock()
							turn++
							return all[turn%servers].dial()
						},
					}
					if http2 {
						r.rest.Host, r.rest.TLSClientConfig = "https://balancer", rest.TLSClientConfig{Insecure: true}
					}
					r.streams = map[bool]int{true: maxHTTP1Streams + 1, false: 1}[http2]
					r.start("lake")
					r.pass(time.Minute)
					r.want("lake", "added a 91")
					r.stop()
				})
			})
		}
	}
}
