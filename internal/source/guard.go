package source

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

const (
	// stillTime is how long the server may send nothing of an answer. It is below the minute after which an API server
	// gives up a request (--request-timeout).
	stillTime = 50 * time.Second
	// endTime is how much later than its time limit a watch may end.
	endTime = 5 * time.Second
	// pluginCalls is how many requests may wait, if there is a credential plugin, for that or for the begin of their
	// answer. It bounds the goroutines that are left behind.
	pluginCalls = 256
)

// StalledError says that nothing comes over an open connection.
type StalledError struct {
	Host   string
	After  time.Duration
	Plugin string // that the credentials come from; "" is none
}

func (e *StalledError) Error() string {
	also := ""
	if e.Plugin != "" {
		also = ", and at the credential plugin " + e.Plugin
	}
	return fmt.Sprintf("the API server %s has sent nothing for %s: look at the balancers and proxies in front of it%s", e.Host, e.After, also)
}

// Timeout is that of net.Error.
func (e *StalledError) Timeout() bool { return true }

// guard ends requests whose answers stall. A balancer or a proxy may lose a connection and leave it open on our side,
// without notice, and a watch would be silent for as long as that lasts. Only time in which somebody waits for bytes
// counts: a watch that a sink holds up has its bytes in the kernel.
type guard struct {
	next   http.RoundTripper
	plugin string
	calls  chan struct{}
	http2  atomic.Bool // the last answer came over HTTP/2
}

func newGuard(config *rest.Config) (*guard, error) {
	next, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	g := &guard{next: next, calls: make(chan struct{}, pluginCalls)}
	if config.ExecProvider != nil {
		g.plugin = config.ExecProvider.Command
	}
	return g, nil
}

// watchSeconds is the time limit of a watch that may take most seconds. client-go pings an HTTP/2 connection that is
// silent for half a minute. HTTP/1.1 has no such thing, so there a watch ends before it has been silent for too long.
func (g *guard) watchSeconds(most int64) int64 {
	if g.http2.Load() {
		return most
	}
	return min(most, max(1, int64((stillTime-endTime).Seconds())))
}

// limitOf is how long the answer may stall. Behind some proxies a silent watch has no answer until its end.
func limitOf(request *http.Request) time.Duration {
	seconds, err := strconv.Atoi(request.URL.Query().Get("timeoutSeconds"))
	if err != nil {
		return stillTime
	}
	return max(stillTime, time.Duration(seconds)*time.Second+endTime)
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	limit := limitOf(request)
	ctx, cancel := context.WithCancelCause(request.Context())
	timer := time.AfterFunc(limit, func() {
		cancel(&StalledError{request.URL.Host, limit, g.plugin})
		utilnet.CloseIdleConnectionsFor(g.next) // they may be lost, too, and the next request would wait for them
	})
	answer, err := g.send(request.WithContext(ctx))
	timer.Stop()
	if err != nil {
		if stalled := context.Cause(ctx); stalled != nil {
			err = stalled
		}
		cancel(nil)
		utilnet.CloseIdleConnectionsFor(g.next) // also after a shorter deadline of the caller
		return nil, err
	}
	g.http2.Store(answer.ProtoMajor > 1)
	answer.Body = &guardedBody{answer.Body, ctx, cancel, timer, limit}
	return answer, nil
}

// send is next's RoundTrip. A credential plugin of the kubeconfig may hang, and client-go waits for it even when the
// request's context has ended: then its goroutine is left behind.
func (g *guard) send(request *http.Request) (*http.Response, error) {
	if g.plugin == "" {
		return g.next.RoundTrip(request)
	}
	ctx := request.Context()
	select {
	case g.calls <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	answers, failures := make(chan *http.Response), make(chan error, 1)
	go func() {
		defer func() { <-g.calls }()
		answer, err := g.next.RoundTrip(request)
		if err != nil {
			failures <- err
			return
		}
		select {
		case answers <- answer:
		case <-ctx.Done():
			answer.Body.Close()
		}
	}()
	select {
	case answer := <-answers:
		return answer, nil
	case err := <-failures:
		return nil, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// guardedBody is the body of an answer, guarded.
type guardedBody struct {
	io.ReadCloser
	ctx    context.Context // of the request
	cancel context.CancelCauseFunc
	timer  *time.Timer // ends it
	limit  time.Duration
}

// Read implements io.Reader.
func (b *guardedBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.limit)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	if err != nil && err != io.EOF && b.ctx.Err() != nil {
		err = context.Cause(b.ctx)
	}
	return n, err
}

// Close implements io.Closer.
func (b *guardedBody) Close() error {
	b.timer.Stop()
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}
