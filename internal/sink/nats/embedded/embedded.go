//go:build !noembedded

package embedded

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Server is a running server.
type Server struct{ inner *server.Server }

// Start returns when the server takes connections.
func Start(options Options) (*Server, error) {
	if options.StoreDir == "" {
		return nil, errors.New("start nats server: StoreDir is empty: name a directory for its streams")
	}
	config := &server.Options{
		Host: options.Host, Port: options.Port, StoreDir: options.StoreDir,
		MaxPayload: options.MaxPayload, JetStream: true, NoSigs: true, NoLog: true, DisableJetStreamBanner: true,
	}
	if config.Host == "" {
		config.Host = "127.0.0.1"
	}
	if config.Port == 0 {
		config.Port = server.RANDOM_PORT
	}
	inner, err := server.NewServer(config)
	if err != nil {
		return nil, fmt.Errorf("start nats server: %w", err)
	}
	inner.Start() // returns; the server's goroutines end in Shutdown
	if !inner.ReadyForConnections(time.Minute) {
		inner.Shutdown()
		inner.WaitForShutdown()
		return nil, fmt.Errorf("start nats server: not ready on %s:%d: is the port in use?", config.Host, options.Port)
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
