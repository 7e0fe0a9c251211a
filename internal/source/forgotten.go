package source

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Each server of a control plane has its own history in memory, which begins with its last restart, or with the first
// request for a custom resource. So that one has forgotten a position says nothing of the others, and the watch is
// asked for again through other connections before it is believed. That ends also where a balancer leads all of them to
// one server.

const (
	// minRefusals is how often a position is refused for each server that there is, before it is gone, where more than
	// one could know it. Of two one is not met in 20 connections once in a million times, and of five in 50 once in
	// 70,000.
	minRefusals = 10
	// refusalPause is the time between two of them.
	refusalPause = 250 * time.Millisecond
)

// refusals are the answers in a row that the position is gone. They are for any goroutine. The zero value has none.
type refusals struct{ newest atomic.Pointer[refusal] }

// refusal is the newest of some answers.
type refusal struct {
	err   error
	times int
	last  time.Time
}

// note takes one more.
func (r *refusals) note(err error, now time.Time) {
	noted := refusal{err, 1, now}
	if before := r.newest.Load(); before != nil && now.Sub(before.last) < keptTime {
		noted.times += before.times
	}
	r.newest.Store(&noted)
}

// convinces says whether the position is gone at each of so many servers. Where nobody knows (0), they count as two.
func (r *refusal) convinces(servers int) bool {
	return servers == 1 || r.times >= minRefusals*max(servers, 2)
}

// servers is how many API servers there are, by the Leases of their identities (KEP-1965), 0 where nobody may know: the
// Leases cannot be read, or there are none. One that has left is counted for as long as its Lease lasts.
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

// redial makes requests go through other connections than before, once for all streams that ask for it since. A
// connection of HTTP/2 is given up for what follows by a request that says so; its watches go on. How many connections
// that takes is left to chance: a balancer that leads them to its servers by turns would lead every watch of a stream
// to the same one, where all that a stream asks between two of them takes as many connections as there are servers.
func (c *Client) redial(ctx context.Context, since time.Time) {
	_, _ = c.redialled.get(ctx, since, maxAge, func(ctx context.Context) (struct{}, error) {
		for range 1 + rand.IntN(2) {
			_ = c.rest.Get().AbsPath("/livez").SetHeader("Connection", "close").MaxRetries(0).Do(ctx).Error() // whatever it says
			utilnet.CloseIdleConnectionsFor(c.guard.next)
		}
		return struct{}{}, nil
	})
}

// keptTime is for how long a server keeps what happened, and some more (k8s.io/apiserver keeps 75 s, unless there are
// more than 102,400 changes).
const keptTime = time.Minute
