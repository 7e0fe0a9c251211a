// Package wire speaks Kafka's protocol over kafka-go's transport: connections, security, requests and errors. It knows
// neither records nor what a sink promises. Every request is one attempt: what to do after an error is the caller's
// decision, and Classify tells what the error allows.
package wire

import (
	"context"
	"errors"
)

var errNotBuilt = errors.New("wire: not built yet")

// Cluster is the way to the brokers of one cluster. Its methods can be called from many goroutines at once. Every
// method that takes a context sends its request once, and returns within Options.Timeout if not said otherwise.
type Cluster struct{}

// New returns a Cluster that has not connected yet. Its error names the option that is wrong.
func New(options Options) (*Cluster, error) { return nil, errNotBuilt }

// Close closes all connections. Requests under way fail. No goroutine is left when it returns.
func (c *Cluster) Close() {}

// Refresh forgets which broker leads which partition, and the connections that nobody is using. It is for a request
// that failed because leaders moved (codes 5, 6) or a connection died, before the next attempt; it does no I/O, and
// many calls in a short time are one.
func (c *Cluster) Refresh() {}

// Reach connects, logs in and asks for the brokers. Its error is that of the connection: what keeps the client from
// talking to this cluster, and the setting to change.
func (c *Cluster) Reach(ctx context.Context) error { return errNotBuilt }
