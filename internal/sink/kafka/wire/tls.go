package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
)

// TLS configures verified connections; there is no way to leave the verification out. The files hold PEM and are read
// again for every connection, so they can be renewed.
type TLS struct {
	CAFile            string // "" is the system's authorities
	CertFile, KeyFile string // of the client; both or none
	ServerName        string // what the broker's certificate must name; "" is the host that is dialled
}

// handshake encrypts a connection to a broker at an address.
func (t *TLS) handshake(ctx context.Context, raw net.Conn, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	config, err := t.config(host)
	if err != nil {
		return nil, fileError(address, err)
	}
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, handshakeError(address, config.ServerName, err)
	}
	return conn, nil
}

// config reads the files. host is whom the broker's certificate must name, if the options do not say.
func (t *TLS) config(host string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if config.ServerName == "" {
		config.ServerName = host
	}
	var problems []error
	if t.CAFile != "" {
		pool, err := readCA(t.CAFile)
		if err != nil {
			problems = append(problems, fmt.Errorf("option TLS.CAFile (kafka.tls.ca): %w", err))
		}
		config.RootCAs = pool
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		problems = append(problems, errors.New("options TLS.CertFile and TLS.KeyFile (kafka.tls.cert, kafka.tls.key) belong together: set both or none"))
	} else if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			problems = append(problems, fmt.Errorf("options TLS.CertFile and TLS.KeyFile (kafka.tls.cert, kafka.tls.key): %w", err))
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, errors.Join(problems...)
}

func readCA(path string) (*x509.CertPool, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("%s holds no certificate in PEM form", path)
	}
	return pool, nil
}
