package source

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// AwaitReady returns when the API server says that it is ready, or an error after half a minute. A server that has just
// started answers before it serves custom resources: what it does not tell then is not gone.
func AwaitReady(ctx context.Context, config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.Timeout = askTime
	client, err := newRESTClient(config)
	if err != nil {
		return err
	}
	ask := func() error {
		err := client.Get().AbsPath("/readyz").Do(ctx).Error()
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			return nil // a server that does not tell is taken to be ready
		}
		return err
	}
	patience := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond), backoff.WithMaxInterval(time.Second), backoff.WithMaxElapsedTime(askTime),
	)
	if err := backoff.Retry(ask, backoff.WithContext(patience, ctx)); err != nil {
		return fmt.Errorf("wait for the API server to be ready: %w", ExplainServerError(config.Host, err))
	}
	return nil
}
