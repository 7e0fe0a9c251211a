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
// which could take it while its server is down, and outside those of the API servers and Kafka brokers of tests.
func freePort(t *testing.T) int {
	t.Helper()
	ports.Lock()
	defer ports.Unlock()
	if ports.next == 0 {
		ports.next = 10000 + os.Getpid()%1000
	}
	for ports.next < 12000 {
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
