//go:build !noembedded

package embedded

import (
	"cmp"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Server is a running server.
type Server struct{ inner *server.Server }

// Start returns when the server takes connections. "" as its host is 127.0.0.1, and 0 as its port any that is free.
func Start(storeDir, host string, port int) (*Server, error) {
	config := &server.Options{
		Host: cmp.Or(host, "127.0.0.1"), Port: cmp.Or(port, server.RANDOM_PORT), StoreDir: storeDir,
		JetStream: true, NoSigs: true, NoLog: true, DisableJetStreamBanner: true,
	}
	inner, err := server.NewServer(config)
	if err != nil {
		return nil, fmt.Errorf("start nats server: %w", err)
	}
	inner.Start() // returns; the server's goroutines end in Shutdown
	if !inner.ReadyForConnections(time.Minute) {
		inner.Shutdown()
		inner.WaitForShutdown()
		return nil, fmt.Errorf("start nats server: not ready on %s:%d: is the port in use?", config.Host, port)
	}
	return &Server{inner: inner}, nil
}

// URL is where clients connect.
func (s *Server) URL() string { return s.inner.ClientURL() }

// Shutdown ends the server, and returns when its streams are on disk.
func (s *Server) Shutdown() {
	s.inner.Shutdown()
	s.inner.WaitForShutdown()
}
