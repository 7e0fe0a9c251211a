package wire

import (
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"testing"
)

// listen serves connections with speak, and closes them at the test's end.
func listen(t *testing.T, speak func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	done := make(chan []net.Conn)
	go func() {
		var conns []net.Conn
		defer func() { done <- conns }()
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns = append(conns, conn)
			speak(conn)
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		for _, conn := range <-done {
			conn.Close()
		}
	})
	return listener.Addr().String()
}

// says answers the first bytes of a connection with a text, and closes it.
func says(text string) func(net.Conn) {
	return func(conn net.Conn) {
		if _, err := conn.Read(make([]byte, 1024)); err == nil {
			conn.Write([]byte(text))
		}
		conn.Close()
	}
}

// unused is an address where nobody listens any more.
func unused(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

func writeCA(t *testing.T, path string, certificate *x509.Certificate) {
	t.Helper()
	must(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}), 0o600))
}
