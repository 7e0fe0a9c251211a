package e2e

import (
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
)

// ports are those that were given away. A server that is down at the moment does not hold its port.
var ports struct {
	sync.Mutex
	next int
}

// freePort finds a port that a server may take again and again. It is below the range of outgoing connections, one of
// which could take it while its server is down.
func freePort(t *testing.T) int {
	t.Helper()
	ports.Lock()
	defer ports.Unlock()
	if ports.next == 0 {
		ports.next = 12000 + os.Getpid()%4000
	}
	for ports.next < 20000 {
		port := ports.next
		ports.next++
		if listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			listener.Close()
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}
