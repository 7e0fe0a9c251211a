package wire

import (
	"context"
	"fmt"
	"strings"

	"github.com/segmentio/kafka-go/protocol/metadata"
)

// Cluster is the way to the brokers of one cluster. Its methods can be called from many goroutines at once. Every
// method that takes a context sends its request once, and returns within Options.Timeout if not said otherwise, but for
// the time that a broker asks to wait before (KIP-219).
type Cluster struct{ *leaders }

// New returns a Cluster that has not connected yet. Its error names the options that are wrong.
func New(options Options) (*Cluster, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	login, err := newLogin(options.SASL)
	if err != nil {
		return nil, err
	}
	return &Cluster{newLeaders(newLink(options, login))}, nil
}

// Close closes all connections. Requests under way fail. No goroutine is left when it returns.
func (c *Cluster) Close() { c.close() }

// Refresh forgets which broker leads which partition and, where a connection broke, all connections that nobody is
// using. It is for a request that failed because leaders moved (codes 5, 6) or a connection died, before the next
// attempt; it does no I/O, and many calls in a short time are one.
func (c *Cluster) Refresh() { c.refresh() }

// Reach connects, logs in and asks for the brokers. Its error is that of the connection: what keeps the client from
// talking to this cluster, and the setting to change. It returns within twice Options.Timeout.
func (c *Cluster) Reach(ctx context.Context) error {
	answer, err := ask[*metadata.Response](ctx, c.link, anyBroker, &metadata.Request{TopicNames: []string{}})
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

// Names are those of all topics that the user may see.
func (c *Cluster) Names(ctx context.Context) (names []string, err error) {
	answer, err := ask[*metadata.Response](ctx, c.link, anyBroker, &metadata.Request{})
	if err != nil {
		return nil, err
	}
	for i := range answer.Topics {
		if answer.Topics[i].ErrorCode == 0 && !answer.Topics[i].IsInternal {
			names = append(names, answer.Topics[i].Name)
		}
	}
	return names, nil
}

// Partitions is how many each of the topics has; those that nobody knows, or that the user must not see, are left out.
func (c *Cluster) Partitions(ctx context.Context, names []string) (map[string]int, error) {
	counts := make(map[string]int, len(names))
	if len(names) == 0 {
		return counts, nil
	}
	answer, err := ask[*metadata.Response](ctx, c.link, anyBroker, &metadata.Request{TopicNames: names})
	if err != nil {
		return nil, err
	}
	for i := range answer.Topics {
		if answer.Topics[i].ErrorCode == 0 {
			counts[answer.Topics[i].Name] = len(answer.Topics[i].Partitions)
		}
	}
	return counts, nil
}
