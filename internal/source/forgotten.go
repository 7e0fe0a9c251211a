package source

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Each server of a control plane has its own watch cache, which begins with its last restart, or with the first request
// for a custom resource. So if one has forgotten a position, others may not have, and the watch is tried again over
// other connections before that is believed. The number of tries is bounded, since a balancer may send all of them to
// one server.

const (
	// minRefusals is how many refusals for each server prove that a position is gone, if there is more than one server.
	// With two servers, 20 connections miss one of them once in a million times; with five, 50 connections once in
	// 70,000.
	minRefusals = 10
	// refusalPause is the time between two tries.
	refusalPause = 250 * time.Millisecond
)

// refusal is the newest of the answers in a row that the position is gone.
type refusal struct {
	err   error
	times int
	last  time.Time
}

// again is the newest with one more; nil is the first.
func (r *refusal) again(err error, now time.Time) *refusal {
	noted := refusal{err, 1, now}
	if r != nil && now.Sub(r.last) < keptTime {
		noted.times += r.times
	}
	return &noted
}

// convinces says whether the position is gone at each of so many servers; 0, not known, counts as two.
func (r *refusal) convinces(servers int) bool {
	return servers == 1 || r.times >= minRefusals*max(servers, 2)
}

// servers is how many API servers there are, by the Leases of their identities (KEP-1965), 0 if these cannot be read or
// there are none. A server that has left counts for as long as its Lease lasts.
func (c *Client) servers(ctx context.Context) int {
	n, err := c.counted.get(ctx, time.Time{}, maxAge, func(ctx context.Context) (n int, err error) {
		var leases metav1.PartialObjectMetadataList
		path := []string{"/apis/coordination.k8s.io/v1/namespaces", metav1.NamespaceSystem, "leases"}
		request := c.rest.Get().AbsPath(path...).Param("labelSelector", "apiserver.kubernetes.io/identity").MaxRetries(0)
		err = decodeAnswer(request.Do(ctx), &leases)
		for i := range leases.Items {
			if strings.HasPrefix(leases.Items[i].Name, "apiserver-") {
				n++
			}
		}
		return n, err
	})
	if err != nil {
		return 0
	}
	return n
}

// redial makes requests use other connections, once for all streams that ask for that since the time. A request with
// Connection: close retires an HTTP/2 connection for later requests; its watches go on. The number of new connections
// is random: a round-robin balancer could otherwise send every watch of a stream to the same server, if the requests
// between two watches take as many connections as there are servers.
func (c *Client) redial(ctx context.Context, since time.Time) {
	_, _ = c.redialled.get(ctx, since, maxAge, func(ctx context.Context) (struct{}, error) {
		for range 1 + rand.IntN(2) {
			_ = c.rest.Get().AbsPath("/livez").SetHeader("Connection", "close").MaxRetries(0).Do(ctx).Error() // whatever it says
			utilnet.CloseIdleConnectionsFor(c.guard.next)
		}
		return struct{}{}, nil
	})
}

// keptTime is how long after the last one a refusal counts as the next in the row. It is less than a server keeps its
// history (k8s.io/apiserver: 75 s, unless there are more than 102,400 changes).
const keptTime = time.Minute
