package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// newNATSCluster starts three NATS servers, which end with the test, and returns their addresses when they have found
// each other. They tell clients nothing of each other's addresses, so that a client stays behind its proxies.
func newNATSCluster(t *testing.T, dir string) []string {
	t.Helper()
	var ports [3]int
	var routes []*url.URL
	for i := range ports {
		ports[i] = freePort(t)
		routes = append(routes, &url.URL{Scheme: "nats-route", Host: net.JoinHostPort("127.0.0.1", fmt.Sprint(ports[i]))})
	}
	var addresses []string
	for i, port := range ports {
		inner, err := server.NewServer(&server.Options{
			ServerName: fmt.Sprint("n", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, MaxPayload: maxPayload, NoSigs: true, NoLog: true,
			JetStream: true, StoreDir: filepath.Join(dir, fmt.Sprint("jetstream-", i)), Routes: routes,
			Cluster: server.ClusterOpts{Name: "e2e", Host: "127.0.0.1", Port: port, NoAdvertise: true},
		})
		if err != nil {
			t.Fatal(err)
		}
		inner.Start()
		t.Cleanup(func() {
			inner.Shutdown()
			inner.WaitForShutdown()
		})
		if !inner.ReadyForConnections(patience) {
			t.Fatal("a NATS server is not ready for connections")
		}
		addresses = append(addresses, inner.Addr().String())
	}
	streams := openStream(t, addresses...)
	eventually(t, patience, "the NATS servers have a leader", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := streams.js.AccountInfo(ctx)
		return err == nil
	})
	return addresses
}

// followPatiently follows a stream of several servers. One that has just lost an election swallows the question, so
// that each attempt has a deadline of its own.
func followPatiently(log *streamLog) *follower {
	return &follower{
		name: "nats",
		more: func(ctx context.Context, have int) ([]event, error) {
			for {
				once, cancel := context.WithTimeout(ctx, 10*time.Second)
				events, err := log.read(once, uint64(have)+1)
				cancel()
				if err == nil || !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
					return events, err
				}
			}
		},
		again: func() *follower { return followPatiently(log) },
	}
}
