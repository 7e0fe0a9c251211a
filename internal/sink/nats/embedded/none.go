//go:build noembedded

package embedded

import "errors"

// Server is a server that cannot be.
type Server struct{}

// Start returns an error: there is no server in this binary.
func Start(string, string, int) (*Server, error) {
	return nil, errors.New("start nats server: there is none in this binary, as in that of the image: build the exporter without the tag noembedded, or name a server with --sink nats://HOST")
}

// URL is where clients connect.
func (*Server) URL() string { return "" }

// Shutdown does nothing.
func (*Server) Shutdown() {}
