package election

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// client is the leases of an API server.
type client struct {
	rest  *rest.RESTClient
	place Place
}

// longestRequest is how long a request may take whose context says nothing else.
const longestRequest = 30 * time.Second

func newClient(config *rest.Config, place Place) (*client, error) {
	scheme := runtime.NewScheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.APIPath, config.QPS, config.Timeout = "/apis", -1, longestRequest
	config.GroupVersion = &coordinationv1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.AcceptContentTypes, config.ContentType = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.NextProtos = []string{"http/1.1"}
	c, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("build a client for the Lease %s: %w", place, err)
	}
	return &client{c, place}, nil
}

// at completes a request.
func (c *client) at(r *rest.Request) *rest.Request {
	return r.Namespace(c.place.Namespace).Resource("leases").MaxRetries(0)
}

func (c *client) get(ctx context.Context) (*coordinationv1.Lease, error) {
	lease := new(coordinationv1.Lease)
	return lease, c.at(c.rest.Get()).Name(c.place.Name).Do(ctx).Into(lease)
}

func (c *client) create(ctx context.Context, of *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	lease := new(coordinationv1.Lease)
	return lease, c.at(c.rest.Post()).Body(of).Do(ctx).Into(lease)
}

func (c *client) update(ctx context.Context, to *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	lease := new(coordinationv1.Lease)
	return lease, c.at(c.rest.Put()).Name(c.place.Name).Body(to).Do(ctx).Into(lease)
}

// CheckHolder says why another one's Lease is not to be shared: a *ForeignError of what judge says of its mark.
func CheckHolder(ctx context.Context, config *rest.Config, place Place, judge func(theirs string) error) error {
	c, err := newClient(config, place)
	if err != nil {
		return err
	}
	lease, err := c.get(ctx)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return judged(lease, place, judge)
}

// IsHeld asks whether anybody holds the Lease who may be alive.
func IsHeld(ctx context.Context, config *rest.Config, place Place) (bool, error) {
	c, err := newClient(config, place)
	if err != nil {
		return false, err
	}
	lease, err := c.get(ctx)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && holderOf(lease) != "" && isFresh(lease, time.Now()), err
}
