package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
)

// Causes of which diagnose looks for the cause.
const (
	cutHandshake = "the connection was cut during the TLS handshake"
	speaksHTTP   = "this is not a Kafka broker, it answers with HTTP"
	silent       = "the port accepts connections but does not answer like a Kafka broker"
)

// ConnectError says why a connection to a broker was not made, or was of no use. It has no code of Kafka's.
type ConnectError struct {
	Address string
	Cause   string // in words
	Remedy  string // the setting to change
	Class   Class  // Fatal where it is certain that only a person can mend it
	Err     error  // as the network, TLS or login library says it; nil where Cause says all
}

func (e *ConnectError) Error() string {
	text := fmt.Sprintf("connect to %s: %s", e.Address, e.Cause)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap hides io.EOF, for which kafka-go would put another error.
func (e *ConnectError) Unwrap() error {
	if errors.Is(e.Err, io.EOF) {
		return nil
	}
	return e.Err
}

// dialError is for a connection that was not made.
func dialError(address string, err error) error {
	failure := &ConnectError{Address: address, Class: Retriable, Err: err}
	var unknown *net.DNSError
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &unknown):
		failure.Cause, failure.Remedy = "the name is not found", "check kafka.brokers, and the names in the brokers' advertised.listeners"
	case errors.Is(err, syscall.ECONNREFUSED):
		failure.Cause, failure.Remedy = "nobody listens there", "check the port in kafka.brokers and in the brokers' advertised.listeners, and that the broker is up"
	case isTimeout(err):
		failure.Cause, failure.Remedy = "no answer in time", "check kafka.brokers and the brokers' advertised.listeners, and that no firewall is in between"
	default:
		failure.Cause, failure.Remedy = "no connection", "check kafka.brokers and the brokers' advertised.listeners"
	}
	return failure
}

// fileError is for certificates that cannot be read just now. They may be in the middle of being replaced.
func fileError(address string, err error) error {
	return &ConnectError{Address: address, Class: Retriable, Err: err, Cause: "the TLS files cannot be used", Remedy: "check the files"}
}

// handshakeError is for a TLS handshake that failed on our side, or was cut.
func handshakeError(address, name string, err error) error {
	failure := &ConnectError{Address: address, Class: Fatal, Err: err}
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verification *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &authority):
		failure.Cause, failure.Remedy = "the broker's certificate is signed by an authority that is not trusted", "set kafka.tls.ca to a file with the authority's certificate"
	case errors.As(err, &hostname):
		failure.Cause = fmt.Sprintf("the broker's certificate is not for %q", name)
		failure.Remedy = "use a name that is in the certificate in kafka.brokers and the brokers' advertised.listeners, or set kafka.tls.serverName to one"
	case errors.As(err, &invalid), errors.As(err, &verification):
		failure.Cause, failure.Remedy = "the broker's certificate is not valid", "renew it on the broker, or check this machine's clock"
	case errors.As(err, &record):
		if strings.HasPrefix(string(record.RecordHeader[:]), "HTTP/") {
			return notKafka(address, record.RecordHeader[:])
		}
		failure.Cause, failure.Remedy = "the port does not speak TLS", "remove kafka.tls, or use the port of a TLS listener in kafka.brokers"
	case isRemoteAlert(err):
		return alertError(address, err)
	case isTimeout(err):
		failure.Class = Retriable
		failure.Cause, failure.Remedy = "the port accepts connections but does not answer", "check that kafka.brokers names a Kafka listener with TLS, and that the broker is not hanging"
	default:
		failure.Class = Retriable
		failure.Cause, failure.Remedy = cutHandshake, "check that the port in kafka.brokers is a listener with TLS; if not, remove kafka.tls"
	}
	return failure
}

// isRemoteAlert finds what the other side says of TLS; the type of an alert is crypto/tls's own.
func isRemoteAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// alertError is for a broker that refuses our side of TLS. Under TLS 1.3 it comes with the first read.
func alertError(address string, err error) error {
	failure := &ConnectError{Address: address, Class: Fatal, Err: err}
	if text := err.Error(); strings.Contains(text, "certificate") || strings.Contains(text, "unknown certificate authority") {
		failure.Cause = "the broker does not accept the client's certificate, or requires one"
		failure.Remedy = "set kafka.tls.cert and kafka.tls.key to a certificate that an authority of the broker's truststore has signed"
		return failure
	}
	failure.Cause, failure.Remedy = "the broker refuses the TLS handshake", "check the broker's ssl.enabled.protocols and ssl.cipher.suites; TLS 1.2 or 1.3 is needed"
	return failure
}

// firstReadError is for a connection that ended before the broker's first answer.
func firstReadError(address string, encrypted bool, err error) error {
	failure := &ConnectError{Address: address, Class: Retriable, Err: err}
	switch {
	case isRemoteAlert(err):
		return alertError(address, err)
	case isTimeout(err):
		failure.Cause, failure.Remedy = silent, "check that kafka.brokers names a Kafka listener, and that the broker is not hanging"
	case encrypted:
		failure.Cause, failure.Remedy = "the connection was cut before the first answer", "check that the port is a Kafka listener with TLS, and whether it wants a client certificate (kafka.tls.cert, kafka.tls.key)"
	default:
		failure.Cause, failure.Remedy = "the connection was cut before the first answer", "check that the port is a Kafka listener, and whether it is one with TLS (kafka.tls)"
	}
	return failure
}

// notKafka says what answers there, by its first bytes.
func notKafka(address string, seen []byte) error {
	failure := &ConnectError{Address: address, Class: Fatal, Remedy: "set kafka.brokers to the port of a Kafka listener"}
	switch {
	case strings.HasPrefix(string(seen), "HTTP/"):
		failure.Cause = speaksHTTP
	case len(seen) >= 2 && seen[0] == 0x15 && seen[1] == 3: // a TLS alert, RFC 8446 section 5.1
		failure.Cause, failure.Remedy = "the port speaks TLS", "set kafka.tls, or use the port of a listener without TLS in kafka.brokers"
	default:
		failure.Cause = fmt.Sprintf("this is not a Kafka broker, it answers %.40q", seen)
	}
	return failure
}

func isTimeout(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}
