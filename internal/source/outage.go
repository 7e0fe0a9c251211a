package source

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/cenkalti/backoff/v4"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// knocks is how often all streams together try a server that nobody reaches: once it answers, each of them goes on at
// once. Were it left to the Reflector's backoff, which grows for as long as the outage lasts, each would wait as long
// again.
const knocks = 250 * time.Millisecond

// outageTime is how long an outage lasts until it is told again.
const outageTime = 10 * time.Second

// isUnreachable says that the server has not answered at all.
func isUnreachable(err error) bool {
	var op *net.OpError
	var late interface{ Timeout() bool }
	return errors.As(err, &op) || errors.As(err, &late) && late.Timeout() || utilnet.IsProbableEOF(err)
}

// awaitAnswer returns once the server answers anything, or with an error after outageTime. All streams wait for the
// same answer.
func (c *Client) awaitAnswer(ctx context.Context) error {
	_, err := c.reached.get(ctx, freshness{}, func(ctx context.Context) (struct{}, error) {
		ctx, cancel := context.WithTimeout(ctx, outageTime)
		defer cancel()
		return struct{}{}, backoff.Retry(func() error {
			err := c.rest.Get().AbsPath("/livez").MaxRetries(0).Do(ctx).Error()
			if isUnreachable(err) {
				return err
			}
			return nil // it may well say that it is not well, or that this is forbidden
		}, backoff.WithContext(backoff.NewConstantBackOff(knocks), ctx))
	})
	if err != nil {
		return fmt.Errorf("wait for the API server to answer: %w", err)
	}
	return nil
}
