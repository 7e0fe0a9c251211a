package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
)

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
