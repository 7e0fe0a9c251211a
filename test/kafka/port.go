package kafka

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/kubecdc/kubecdc/test/filelock"
)

// The ports of clusters are below the range from which operating systems take the
// local ports of outgoing connections. A port from that range could be lost to any
// client while a broker is down, and a client that retries over loopback can even
// connect to itself there.
const (
	firstPort = 12000
	blocks    = 250
	blockSize = 32 // one cluster: three brokers with all their listeners
)

// reservePorts takes count ports that stay this cluster's until release, also while
// its brokers are down: test binaries that run at the same time share one lock a block.
func reservePorts(count int) (ports []int, release func() error, err error) {
	if count > blockSize {
		return nil, nil, fmt.Errorf("reserve ports: %d are too many for one cluster, limit %d", count, blockSize)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, nil, fmt.Errorf("reserve ports: %w", err)
	}
	dir := filepath.Join(cache, "kubecdc", "ports")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, fmt.Errorf("reserve ports: %w", err)
	}
	for _, block := range rand.Perm(blocks) {
		first := firstPort + block*blockSize
		release, err := filelock.TryLock(filepath.Join(dir, strconv.Itoa(first)+".lock"))
		if err != nil {
			return nil, nil, fmt.Errorf("reserve ports: %w", err)
		}
		if release == nil {
			continue
		}
		if ports := freePorts(first, count); ports != nil {
			return ports, release, nil
		}
		if err := release(); err != nil {
			return nil, nil, fmt.Errorf("reserve ports: %w", err)
		}
	}
	return nil, nil, errors.New("reserve ports: all are taken")
}

// freePorts returns count ports from first on, nil if somebody else has one of them.
func freePorts(first, count int) (ports []int) {
	for port := first; port < first+count; port++ {
		l, err := net.Listen("tcp4", address(port))
		if err != nil {
			return nil
		}
		l.Close()
		ports = append(ports, port)
	}
	return ports
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
