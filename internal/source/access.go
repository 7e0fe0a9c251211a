package source

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Access asks the server what a stream may do, and changes nothing.
type Access struct {
	host   string
	asker  *rest.RESTClient
	stream *Client
}

// NewAccess returns an Access that has asked nothing yet.
func NewAccess(config *rest.Config) (*Access, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	asker, err := newRESTClient(config)
	if err != nil {
		return nil, err
	}
	stream, err := NewClient(config, 1)
	return &Access{host: config.Host, asker: asker, stream: stream}, err
}

// ForbiddenError says which verbs somebody would have to allow.
type ForbiddenError struct {
	Verbs  []string
	Stream change.Stream
}

func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("the API server forbids to %s %s: bind a role with these verbs to the exporter's user",
		strings.Join(e.Verbs, " and "), e.Stream)
}

// Check says why the stream could not be listed and watched: missing verbs, as a *ForbiddenError, or a selector that
// the server refuses.
func (a *Access) Check(ctx context.Context, stream change.Stream, selection Selection) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var missing []string
	for _, verb := range []string{"list", "watch"} {
		allowed, err := a.allowed(ctx, verb, &stream)
		if err != nil {
			return ExplainServerError(a.host, err)
		}
		if !allowed {
			missing = append(missing, verb)
		}
	}
	if len(missing) > 0 {
		return &ForbiddenError{Verbs: missing, Stream: stream}
	}
	err := a.list(ctx, &stream, selection)
	switch {
	case err == nil:
		return nil
	case apierrors.IsBadRequest(err):
		return fmt.Errorf("the API server refuses to list %s: %w: correct its labelSelector and fieldSelector", stream, err)
	}
	return fmt.Errorf("list %s: %w", stream, ExplainServerError(a.host, err))
}

// Leases says which of the verbs that an election needs are not allowed on the Leases of a namespace.
func (a *Access) Leases(ctx context.Context, namespace string) (missing []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	leases := change.Stream{Resource: change.Resource{Group: "coordination.k8s.io", Version: "v1", Name: "leases"}, Namespace: namespace}
	for _, verb := range []string{"get", "create", "update"} {
		allowed, err := a.allowed(ctx, verb, &leases)
		if err != nil {
			return nil, ExplainServerError(a.host, err)
		}
		if !allowed {
			missing = append(missing, verb)
		}
	}
	return missing, nil
}

// Missing says, in one sentence each, which rights the exporter does not have that no stream needs.
func (a *Access) Missing(ctx context.Context) (missing []string) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	definitions := change.Resource{Group: "apiextensions.k8s.io", Version: "v1", Name: "customresourcedefinitions"}
	leases := change.Resource{Group: "coordination.k8s.io", Version: "v1", Name: "leases"}
	for _, right := range []struct {
		stream change.Stream
		lack   string
	}{
		{change.Stream{Resource: definitions}, "a stream whose definition is deleted waits for it"},
		{change.Stream{Resource: leases, Namespace: metav1.NamespaceSystem}, "a gap begins some seconds later, since nobody knows how many API servers there are"},
	} {
		if allowed, err := a.allowed(ctx, "list", &right.stream); err == nil && !allowed {
			missing = append(missing, fmt.Sprintf("the API server forbids to list %s: %s", right.stream, right.lack))
		}
	}
	return missing
}

// list asks for one object and looks at the answer's status only.
func (a *Access) list(ctx context.Context, stream *change.Stream, selection Selection) error {
	body, err := a.stream.request(stream, selection).Param("limit", "1").Stream(ctx)
	if err != nil {
		return err
	}
	return body.Close()
}

func (a *Access) allowed(ctx context.Context, verb string, stream *change.Stream) (bool, error) {
	review := authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: stream.Namespace, Verb: verb, Group: stream.Resource.Group, Version: stream.Resource.Version, Resource: stream.Resource.Name,
		},
	}}
	review.APIVersion, review.Kind = authorizationv1.SchemeGroupVersion.String(), "SelfSubjectAccessReview"
	question, err := json.Marshal(&review)
	if err != nil {
		return false, fmt.Errorf("encode the access review: %w", err)
	}
	answer := a.asker.Post().AbsPath("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").Body(question).Do(ctx)
	err = decodeAnswer(answer, &review)
	return review.Status.Allowed, err
}

// NamespaceMissing says whether the namespace is known not to exist. A stream of it is silent until somebody creates
// it.
func (a *Access) NamespaceMissing(ctx context.Context, name string) bool {
	return apierrors.IsNotFound(a.asker.Get().AbsPath("/api/v1/namespaces", name).Do(ctx).Error())
}
