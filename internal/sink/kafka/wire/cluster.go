package wire

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/metadata"
)

const (
	defaultTimeout = 5 * time.Second

	// connectTimeout is for a connection with TLS, and again for the login on it: a dead broker costs that much
	// whenever it is drawn.
	connectTimeout = 2 * time.Second

	// brokersTTL is how old the transport's list of brokers gets, and the limit for asking. Leaders are not in it: this
	// package asks for them when it needs to.
	brokersTTL = 2 * time.Second

	// idleTimeout is how long a connection may be unused: less than load balancers allow, so that it is not cut when it
	// is needed.
	idleTimeout = 3 * time.Minute

	// refreshPause is between two times that Refresh closes connections.
	refreshPause = 250 * time.Millisecond
)

// Cluster is the way to the brokers of one cluster. Its methods can be called from many goroutines at once. Every
// method that takes a context sends its request once, and returns within Options.Timeout if not said otherwise, but for
// the time that a broker asks to wait before (KIP-219).
type Cluster struct {
	options   Options
	address   net.Addr // of all bootstrap brokers
	dialer    *dialer
	transport *kafka.Transport
	leaders   leaders
	throttles throttles
	requests  requests
	serial    atomic.Int32 // correlation ids

	broken    atomic.Bool // a connection failed since connections were closed
	refreshed atomic.Int64
}

// New returns a Cluster that has not connected yet. Its error names the options that are wrong.
func New(options Options) (*Cluster, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	login, err := newLogin(options.SASL)
	if err != nil {
		return nil, err
	}
	d := &dialer{options: &options, conns: map[*guarded]struct{}{}}
	c := &Cluster{
		options: options,
		address: kafka.TCP(options.Brokers...),
		dialer:  d,
		transport: &kafka.Transport{
			Dial:        d.dial,
			DialTimeout: options.connectTimeout(),
			IdleTimeout: idleTimeout,
			MetadataTTL: brokersTTL,
			// Not nil, which is all topics. None: the brokers come with any answer, and leaders are asked for by this
			// package.
			MetadataTopics: []string{},
			ClientID:       options.ClientID,
		},
		requests: requests{running: map[*context.CancelFunc]struct{}{}},
	}
	if login != nil { // a nil *login would be a Mechanism
		c.transport.SASL = login
	}
	c.leaders.init()
	return c, nil
}

// Close closes all connections. Requests under way fail. No goroutine is left when it returns.
func (c *Cluster) Close() {
	c.requests.close()
	c.transport.CloseIdleConnections()
	c.dialer.close()
}

// Refresh forgets which broker leads which partition and, where a connection broke, all connections that nobody is
// using. It is for a request that failed because leaders moved (codes 5, 6) or a connection died, before the next
// attempt; it does no I/O, and many calls in a short time are one.
func (c *Cluster) Refresh() {
	last, now := c.refreshed.Load(), time.Now().UnixNano()
	if now-last < int64(refreshPause) || !c.refreshed.CompareAndSwap(last, now) {
		return
	}
	c.leaders.clear()
	if c.broken.Swap(false) {
		c.transport.CloseIdleConnections()
	}
}

// Reach connects, logs in and asks for the brokers. Its error is that of the connection: what keeps the client from
// talking to this cluster, and the setting to change. It returns within twice Options.Timeout.
func (c *Cluster) Reach(ctx context.Context) error {
	answer, err := ask[*metadata.Response](ctx, c, anyBroker, &metadata.Request{TopicNames: []string{}})
	if err != nil {
		bounded, done, closed := c.requests.begin(ctx, c.options.Timeout)
		if closed != nil {
			return closed
		}
		defer done()
		if ctx.Err() != nil {
			return err
		}
		return diagnosis{c.dialer}.of(bounded, err)
	}
	if len(answer.Brokers) == 0 {
		return fmt.Errorf("connect to %s: the broker does not know any brokers yet", c.bootstrap())
	}
	return nil
}

func (c *Cluster) bootstrap() string { return strings.Join(c.options.Brokers, ",") }
