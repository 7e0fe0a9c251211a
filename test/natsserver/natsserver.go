// Package natsserver runs NATS servers inside the process of a test, with JetStream, and with streams on disk.
// A test that kills its server runs it in a process of its own. What `exporter dev` runs is package embedded instead.
package natsserver

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// patience is far more time than anything here takes on a busy machine.
const patience = 2 * time.Minute

// Options are the server's own.
type Options = server.Options

// Server is a server that can be stopped, and started again at its address.
type Server struct {
	*server.Server         // the one that runs, or ran
	Options        Options // of the next start
}

// Run starts a server that keeps its streams in a directory. It listens on a free port of 127.0.0.1, unless a change of
// its options says otherwise; a change that is nil changes nothing.
func Run(storeDir string, changes ...func(*Options)) (*Server, error) {
	s := &Server{Options: Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: storeDir, NoSigs: true, NoLog: true,
	}}
	for _, change := range changes {
		if change != nil {
			change(&s.Options)
		}
	}
	return s, s.start()
}

// Start runs a server that dies with the test, in a directory of the test.
func Start(t testing.TB, changes ...func(*Options)) *Server {
	t.Helper()
	s, err := Run(t.TempDir(), changes...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

func (s *Server) start() error {
	options := s.Options // the server writes into them
	var err error
	if s.Server, err = server.NewServer(&options); err != nil {
		return fmt.Errorf("start nats server: %w", err)
	}
	s.Server.Start()
	if !s.ReadyForConnections(patience) {
		s.Stop()
		return errors.New("start nats server: it takes no connections")
	}
	s.Options.Port = options.Port
	return nil
}

// Restart starts it again where it was; it stops it before, if nobody has.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Stop()
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
}

// Stop returns when its streams are on disk.
func (s *Server) Stop() {
	s.Shutdown()
	s.WaitForShutdown()
}

// URL is where clients connect.
func (s *Server) URL() string { return s.ClientURL() }

// Connect is a connection that ends with the test. It waits longer than the library does by itself: two seconds for a
// connection, five for an answer.
func Connect(t testing.TB, url string, options ...natsgo.Option) jetstream.JetStream {
	t.Helper()
	nc, err := natsgo.Connect(url, append(options, natsgo.Timeout(patience))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(patience))
	if err != nil {
		t.Fatal(err)
	}
	return js
}
