package selection

import (
	"context"
	"errors"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/source"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// Current is what is streamed of a cluster now. It may be asked from any goroutine.
type Current struct {
	discovery *source.Discovery
	// Chosen is replaced as a whole when streams come and go.
	Chosen atomic.Pointer[Choice]
}

// Streams are those that are streamed now.
func (c *Current) Streams() []Selected {
	if chosen := c.Chosen.Load(); chosen != nil {
		return chosen.Streams
	}
	return nil
}

// Resolve finds the streams that the configured resources stand for now. Every name that fails is in the error, and
// what can be found is found all the same.
func (c *Current) Resolve(ctx context.Context, server *rest.Config, resources []config.Resource) (*source.Catalog, error) {
	var err error
	if c.discovery, err = source.NewDiscovery(server); err != nil {
		return nil, err
	}
	catalog, err := c.discovery.Read(ctx)
	if err != nil {
		return nil, err
	}
	chosen, errs := Choose(catalog, resources)
	c.Chosen.Store(chosen)
	for i := range errs {
		errs[i] = explain(server.Host, errs[i])
	}
	return catalog, usage.Several("resources", errs...)
}

// explain tells a wrong name, which is the user's, from a server that does not answer.
func explain(host string, err error) error {
	var unknown *source.UnknownResourceError
	var unwatchable *source.UnwatchableError
	switch {
	case err == nil, usage.Is(err):
		return err
	case errors.As(err, &unknown) && unknown.Cause != nil:
		return source.ExplainServerError(host, err)
	case errors.As(err, &unknown), errors.As(err, &unwatchable):
		return usage.Wrap(err)
	}
	return source.ExplainServerError(host, err)
}
