package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// Server receives the webhook for as long as the process lives. What comes is for the one who takes it at the time;
// while nobody does, the answer is 503, or 429 while that ends.
type Server struct {
	listener     net.Listener
	certificates *Certificates
	places       *semaphore.Weighted    // of the requests that are read
	large        *semaphore.Weighted    // of the one event that is large
	taker        atomic.Pointer[intake] // nil is nobody
	ended        chan struct{}          // closed when the server cannot go on
	err          error                  // why; it is set before
}

// The reasons for which a connection or a request is refused.
const (
	handshake = "handshake" // no certificate, or one that nobody trusts
	busy      = "busy"
	malformed = "malformed"
	late      = "late"
	failed    = "failed"
)

// Reasons are all that an Observer may be told of a refusal.
func Reasons() []string { return []string{handshake, busy, malformed, late, failed} }

// What a sender may take.
const (
	atOnce     = 8
	answerTime = 25 * time.Second // the API server waits for 30
	headTime   = 10 * time.Second
	idleTime   = 2 * time.Minute
	maxHeaders = 16 << 10
)

// NewServer makes a server. Run closes the listener. The certificates are loaded.
func NewServer(listener net.Listener, certificates *Certificates) *Server {
	return &Server{
		listener: listener, certificates: certificates, places: semaphore.NewWeighted(atOnce), large: semaphore.NewWeighted(1),
		ended: make(chan struct{}),
	}
}

// Run receives until ctx ends.
func (s *Server) Run(ctx context.Context) {
	web := &http.Server{
		Handler: s, ReadHeaderTimeout: headTime, ReadTimeout: answerTime, WriteTimeout: answerTime + headTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeaders, ErrorLog: log.New(refusals{s}, "", 0), BaseContext: func(net.Listener) context.Context { return ctx },
	}
	defer context.AfterFunc(ctx, func() { web.Close() })() // nobody is owed an answer: the API server sends the batch again
	err := web.Serve(tls.NewListener(s.listener, s.certificates.Config()))
	s.err = fmt.Errorf("receive the audit webhook on %s: %w", s.listener.Addr(), err)
	close(s.ended)
}

// Take puts what comes in line until ctx ends, and returns when nothing of it is under way any more.
func (s *Server) Take(ctx context.Context, config Config, line Line) error {
	return s.begin(ctx, config, line)()
}

// begin is Take up to where it waits, and returns the rest.
func (s *Server) begin(ctx context.Context, config Config, line Line) (wait func() error) {
	over, end := context.WithCancel(ctx)
	s.taker.Store(newIntake(over, config, line))
	return func() (err error) {
		select {
		case <-ctx.Done():
		case <-s.ended:
			err = s.err
		}
		s.taker.Store(nil)
		end()
		_ = s.places.Acquire(context.WithoutCancel(ctx), atOnce) // until no request is under way; no end of ctx cuts it short
		s.places.Release(atOnce)
		return err
	}
}

// refused tells whoever takes what comes.
func (s *Server) refused(reason string, err error) {
	if t := s.taker.Load(); t != nil {
		t.Observer.Refused(reason, err)
	}
}

// ServeHTTP takes one batch.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "want POST of an EventList of audit.k8s.io/v1", http.StatusMethodNotAllowed)
		return
	}
	if !s.places.TryAcquire(1) {
		s.refused(busy, errBusy)
		refuse(w, http.StatusTooManyRequests, errBusy)
		return
	}
	defer s.places.Release(1)
	t := s.taker.Load()
	if t == nil {
		refuse(w, http.StatusServiceUnavailable, errNobody)
		return
	}
	ctx, stop := during(t.over, w, r)
	defer stop()
	code, reason, err := http.StatusServiceUnavailable, failed, t.take(ctx, r.Body, s.large)
	switch {
	case err == nil:
		w.WriteHeader(http.StatusOK)
		return
	case t.over.Err() != nil: // which is nobody's fault
		refuse(w, code, errNobody)
		return
	case errors.Is(err, errForm) || errors.Is(err, io.ErrUnexpectedEOF):
		code, reason = http.StatusBadRequest, malformed
	case ctx.Err() != nil:
		reason, err = late, errLate
	}
	t.Observer.Refused(reason, err)
	refuse(w, code, err)
}

// What a sender is told.
var (
	errBusy   = errors.New("too many requests at once: send it again")
	errNobody = errors.New("this exporter takes no audit events now: send it again, perhaps another one does")
	errLate   = errors.New("the sinks did not take the records in time: send it again")
)

// during is the request's context. It ends with the taker, too, and then nothing more is read of the body.
func during(over context.Context, w http.ResponseWriter, r *http.Request) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithTimeout(r.Context(), answerTime)
	body, done := http.NewResponseController(w), make(chan struct{})
	unhook := context.AfterFunc(over, func() {
		defer close(done)
		cancel()
		body.SetReadDeadline(time.Unix(1, 0)) // a connection that cannot be told so has ended
	})
	return ctx, func() {
		if !unhook() {
			<-done
		}
		cancel()
	}
}

// refuse answers with an error. The next attempt may come over another connection, to whoever takes it then.
func refuse(w http.ResponseWriter, code int, err error) {
	w.Header().Set("Retry-After", "1")
	w.Header().Set("Connection", "close")
	http.Error(w, err.Error(), code)
}

// refusals takes the lines of net/http's log: each is of a connection that came to nothing.
type refusals struct{ *Server }

func (r refusals) Write(line []byte) (int, error) {
	r.refused(handshake, errors.New(string(line)))
	return len(line), nil
}

// Certificates are the files in PEM that say who the server is, and who may send. They are read for every connection,
// so they can be renewed.
type Certificates struct {
	Cert, Key, ClientCA string
	// Failed is told why the files cannot be read any more; what they said before counts.
	Failed func(error)

	said atomic.Pointer[tls.Config]
}

// Load reads the files. The error names the one that is wrong.
func (c *Certificates) Load() error {
	config, err := c.read()
	if err == nil {
		c.said.Store(config)
	}
	return err
}

// Config is a server's configuration that follows the files. Load has been called.
func (c *Certificates) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			if err := c.Load(); err != nil {
				c.Failed(err)
			}
			return c.said.Load(), nil
		},
	}
}

func (c *Certificates) read() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("read audit.tls.cert %s and audit.tls.key %s: %w", c.Cert, c.Key, err)
	}
	text, err := os.ReadFile(c.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("read audit.clientCA: %w", err)
	}
	signers := x509.NewCertPool()
	if !signers.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read audit.clientCA %s: %w", c.ClientCA, errors.New("no certificate in it: want PEM"))
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientCAs: signers, ClientAuth: tls.RequireAndVerifyClientCert,
		SessionTicketsDisabled: true, NextProtos: []string{"http/1.1"},
	}, nil
}
