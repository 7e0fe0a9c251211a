package source

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Discovery asks an API server what it serves, again and again. Two requests do, where the server knows aggregated
// discovery (KEP-3352), and an answer that has not changed is not sent again (RFC 9110, If-None-Match).
type Discovery struct {
	host   string
	client *discovery.DiscoveryClient
}

// NewDiscovery returns a Discovery that has asked nothing yet.
func NewDiscovery(config *rest.Config) (*Discovery, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // one caller, in sequence
	config.Timeout = askTime
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return newRevalidator(next) })
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("build a discovery client for %s: %w", config.Host, err)
	}
	return &Discovery{host: config.Host, client: client}, nil
}

// Read asks for everything. Where a part cannot be told, such as the group of an aggregated API server that is down, the
// catalog says so; an error is that nothing was told.
func (d *Discovery) Read(ctx context.Context) (*Catalog, error) {
	groups, lists, err := d.client.ServerGroupsAndResourcesWithContext(ctx)
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, ExplainServerError(d.host, err)
	}
	if len(groups) == 0 {
		return nil, fmt.Errorf("ask the API server %s what it serves: it names no group: check any proxy before it", d.host)
	}
	return NewCatalog(groups, lists, err), nil
}

// IsGone says whether a resource that a catalog lacks is not served any more: the server is ready, which it is not for a
// moment after its start, and knows nothing at the resource's path. An aggregated API server that is down is not gone: its
// paths answer 503.
func (d *Discovery) IsGone(ctx context.Context, resource change.Resource) bool {
	ready := d.client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	if ready != nil && !apierrors.IsForbidden(ready) && !apierrors.IsNotFound(ready) {
		return false
	}
	err := d.client.RESTClient().Get().AbsPath(resource.Path("")).Param("limit", "1").MaxRetries(0).Do(ctx).Error()
	return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) // rights are looked at before paths
}

// UnknownResourceError is a name that the server does not serve.
type UnknownResourceError struct {
	Name  string
	Cause error // why the server could not tell all, if so
}

func (e *UnknownResourceError) Error() string {
	text := fmt.Sprintf("resource %q: the API server serves no such resource: see kubectl api-resources", e.Name)
	if e.Cause != nil {
		text += fmt.Sprintf(" (its discovery was not complete: %v)", e.Cause)
	}
	return text
}

func (e *UnknownResourceError) Unwrap() error { return e.Cause }

// UnwatchableError is a name of something that cannot be streamed.
type UnwatchableError struct {
	Name  string
	Verbs []string
}

func (e *UnwatchableError) Error() string {
	return fmt.Sprintf("resource %q: it cannot be watched, its verbs are %s: leave it out", e.Name, strings.Join(e.Verbs, ", "))
}
