package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	attemptLimit = 5 * time.Second // one request, so that a paused broker holds nobody up
	pollInterval = 50 * time.Millisecond
)

// newClient returns a client for requests of our own. It writes nothing.
func newClient(brokers ...string) (*kgo.Client, error) {
	dialer := net.Dialer{Timeout: 2 * time.Second}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(brokers...), kgo.Dialer(dialer.DialContext),
		kgo.MetadataMinAge(pollInterval), kgo.MetadataMaxAge(time.Second),
		kgo.RequestTimeoutOverhead(attemptLimit), kgo.RequestRetries(0),
	)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	return client, nil
}

// permanent is an error that until does not try again.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// until repeats attempt until it has no error, and returns its last error when ctx ends. What is asked of the admin
// client comes from a broker: with authorized operations it takes no metadata from its cache.
func until(ctx context.Context, attempt func(context.Context) error) error {
	for {
		once, cancel := context.WithTimeout(kadm.WithAuthorizedOps(ctx), attemptLimit)
		err := attempt(once)
		cancel()
		if err == nil || errors.As(err, new(permanent)) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(pollInterval):
		}
	}
}

// answers reports whether a broker of its own knows itself, and gives out producer ids.
func (n *node) answers(ctx context.Context, client *kgo.Client) error {
	seed := client.SeedBrokers()[0]
	response, err := seed.Request(ctx, kmsg.NewPtrMetadataRequest())
	if err != nil {
		return err
	}
	brokers := response.(*kmsg.MetadataResponse).Brokers
	if !slices.ContainsFunc(brokers, func(b kmsg.MetadataResponseBroker) bool { return int(b.NodeID) == n.id }) {
		return fmt.Errorf("it does not know itself yet among %d brokers", len(brokers))
	}
	request := kmsg.NewPtrInitProducerIDRequest()
	request.ProducerID, request.ProducerEpoch = -1, -1
	response, err = seed.Request(ctx, request)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(response.(*kmsg.InitProducerIDResponse).ErrorCode)
}

// everyBroker asks each broker of the metadata, which leaves out those that are dead.
func (c *Cluster) everyBroker(ctx context.Context, ask func(kmsg.Requestor) error) error {
	response, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, c.client)
	if err != nil {
		return err
	}
	slices.SortFunc(response.Brokers, func(a, b kmsg.MetadataResponseBroker) int { return int(a.NodeID - b.NodeID) })
	for _, b := range response.Brokers {
		if err := ask(c.client.Broker(int(b.NodeID))); err != nil {
			return fmt.Errorf("broker %d: %w", b.NodeID, err)
		}
	}
	return nil
}
