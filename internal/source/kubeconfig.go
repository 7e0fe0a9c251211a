package source

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubecdc/kubecdc/internal/change"
)

// OpenAPI has the document with the schemas of a resource's group and version read while it comes.
func (c *Client) OpenAPI(ctx context.Context, resource change.Resource, read func(io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	request := c.rest.Get().AbsPath("/openapi/v3/" + openAPIPath(resource))
	body, err := request.SetHeader("Accept", "application/json").Stream(ctx)
	if err != nil {
		return err
	}
	return errors.Join(read(body), body.Close())
}

// openAPIPath is the path of the document of the resource's group and version, below /openapi/v3.
func openAPIPath(resource change.Resource) string {
	return strings.TrimPrefix(path.Dir(resource.Path("")), "/")
}

// OpenAPIHashes asks which documents there are. The hash of a resource tells the document of its group and version from
// what it was before and may become: the server's words. There is none where it is "".
func (c *Client) OpenAPIHashes(ctx context.Context) (of func(change.Resource) string, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	text, err := c.rest.Get().AbsPath("/openapi/v3").SetHeader("Accept", "application/json").Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("ask which schemas there are (/openapi/v3): %w", ExplainServerError(c.host, err))
	}
	var said struct {
		Paths map[string]struct {
			URL string `json:"serverRelativeURL"` // with the hash
		} `json:"paths"`
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return nil, fmt.Errorf("read which schemas there are (/openapi/v3): %w", err)
	}
	return func(resource change.Resource) string { return said.Paths[openAPIPath(resource)].URL }, nil
}

// ForbiddenError says which verbs the exporter's user lacks on a stream.
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
func (c *Client) Check(ctx context.Context, stream change.Stream, selection Selection) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	missing, err := c.Forbidden(ctx, stream, "list", "watch")
	switch {
	case err != nil:
		return err
	case len(missing) > 0:
		return &ForbiddenError{Verbs: missing, Stream: stream}
	}
	body, err := c.request(&stream, selection).Param("limit", "1").Stream(ctx) // the answer's status matters
	switch {
	case err == nil:
		return body.Close()
	case apierrors.IsBadRequest(err):
		return fmt.Errorf("the API server refuses to list %s: %w: correct its labelSelector and fieldSelector", stream, err)
	}
	return fmt.Errorf("list %s: %w", stream, ExplainServerError(c.host, err))
}

// Forbidden are those of the verbs that are not allowed on the stream.
func (c *Client) Forbidden(ctx context.Context, stream change.Stream, verbs ...string) (missing []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	for _, verb := range verbs {
		review := authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: stream.Namespace, Verb: verb, Group: stream.Resource.Group, Version: stream.Resource.Version, Resource: stream.Resource.Name,
			},
		}}
		review.APIVersion, review.Kind = authorizationv1.SchemeGroupVersion.String(), "SelfSubjectAccessReview"
		question, err := json.Marshal(&review)
		if err != nil {
			return nil, fmt.Errorf("encode the access review: %w", err)
		}
		path := "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
		answer := c.rest.Post().AbsPath(path).Body(question).Do(ctx)
		if err := decodeAnswer(answer, &review); err != nil {
			return nil, ExplainServerError(c.host, err)
		}
		if !review.Status.Allowed {
			missing = append(missing, verb)
		}
	}
	return missing, nil
}

// NamespaceMissing says whether the namespace certainly does not exist. A stream of it is silent until somebody creates
// it.
func (c *Client) NamespaceMissing(ctx context.Context, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	return apierrors.IsNotFound(c.rest.Get().AbsPath("/api/v1/namespaces", name).Do(ctx).Error())
}

// inClusterName is the cluster's name if no kubeconfig has one.
const inClusterName = "kubernetes"

// askTime is how long a question may take. Otherwise a start would wait in silence for a server that never answers.
const askTime = 30 * time.Second

func loaderOf(file, contextName string) clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: contextName})
}

// LoadKubeconfig follows kubectl's rules: the file, or KUBECONFIG's merged files, or ~/.kube/config, or the service
// account of the pod. It returns the connection and the name of the context in use, "kubernetes" inside a cluster.
func LoadKubeconfig(file, contextName string) (*rest.Config, string, error) {
	return load(loaderOf(file, contextName), file, contextName)
}

// ReadSecret reads the kubeconfig in a Secret, namespace/name, from its key kubeconfig, or value, as Cluster API writes
// it.
func ReadSecret(ctx context.Context, home *rest.Config, secret string) ([]byte, error) {
	client, err := NewClient(home, 0)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	namespace, name, _ := strings.Cut(secret, "/")
	var found struct {
		Data struct {
			Kubeconfig []byte `json:"kubeconfig"`
			Value      []byte `json:"value"`
		} `json:"data"`
	}
	err = decodeAnswer(client.rest.Get().AbsPath("/api/v1/namespaces", namespace, "secrets", name).Do(ctx), &found)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("read the kubeconfig in Secret %s: %s has none of that name: make it, or correct secret in the configuration", secret, home.Host)
	case err != nil:
		return nil, fmt.Errorf("read the kubeconfig in Secret %s: %w", secret, ExplainServerError(home.Host, err))
	}
	if len(found.Data.Kubeconfig) == 0 {
		found.Data.Kubeconfig = found.Data.Value
	}
	if len(found.Data.Kubeconfig) == 0 {
		return nil, fmt.Errorf("read the kubeconfig in Secret %s: it has neither of the keys kubeconfig and value: put it into one of them", secret)
	}
	return found.Data.Kubeconfig, nil
}

// LoadSecret is LoadKubeconfig for the text of a Secret. It refuses a kubeconfig with a command or a file: whoever may
// write the Secret must not run commands here, or read files of this host.
func LoadSecret(secret string, text []byte, contextName string) (*rest.Config, string, error) {
	what := "the kubeconfig in Secret " + secret
	raw, err := clientcmd.Load(text)
	if err != nil {
		return nil, "", fmt.Errorf("load %s: %w: correct it", what, err)
	}
	for name, user := range raw.AuthInfos {
		if user.Exec != nil || user.AuthProvider != nil || cmp.Or(user.TokenFile, user.ClientCertificate, user.ClientKey) != "" {
			return nil, "", fmt.Errorf("load %s: its user %q has a command or a file: put the token, or the certificate and its key, into it", what, name)
		}
	}
	for name, cluster := range raw.Clusters {
		if cluster.CertificateAuthority != "" {
			return nil, "", fmt.Errorf("load %s: its cluster %q has a file: put it into certificate-authority-data", what, name)
		}
	}
	return load(clientcmd.NewNonInteractiveClientConfig(*raw, contextName, new(clientcmd.ConfigOverrides), nil), "in Secret "+secret, contextName)
}

func load(loader clientcmd.ClientConfig, file, contextName string) (*rest.Config, string, error) {
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, "", kubeconfigError(file, err)
	}
	name := cmp.Or(contextName, raw.CurrentContext)
	if _, found := raw.Contexts[name]; name != "" && !found {
		return nil, "", contextError(name, &raw)
	}
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", kubeconfigError(file, err)
	}
	hideLogin(config)
	return config, cmp.Or(name, inClusterName), nil
}

// Namespace is that of the pod, or of the kubeconfig's context, by the rules of LoadKubeconfig.
func Namespace(file, contextName string) (string, error) {
	name, _, err := loaderOf(file, contextName).Namespace()
	if err != nil {
		return "", kubeconfigError(file, err)
	}
	return name, nil
}

// kubeconfigError says what is wrong with the kubeconfig, without the path that os puts around its cause.
func kubeconfigError(file string, err error) error {
	what := "load the kubeconfig"
	if file = cmp.Or(file, os.Getenv("KUBECONFIG")); file != "" {
		what += " " + file
	}
	var path *fs.PathError
	switch {
	case clientcmd.IsEmptyConfig(err):
		return errors.New(what + ": it is empty, or there is none: set --kubeconfig or KUBECONFIG, or run in a pod with a service account")
	case errors.As(err, &path):
		return fmt.Errorf("%s: %w: set --kubeconfig or KUBECONFIG to a file that can be read", what, path.Err)
	}
	detail := strings.TrimPrefix(err.Error(), fmt.Sprintf("error loading config file %q: ", file))
	return fmt.Errorf("%s: %s: correct it, or choose another with --kubeconfig, KUBECONFIG or --context", what, detail)
}

// contextError names the contexts that there are.
func contextError(name string, config *clientcmdapi.Config) error {
	if len(config.Contexts) == 0 {
		return fmt.Errorf("load the kubeconfig: it has no context %q, nor any other: set --kubeconfig or KUBECONFIG", name)
	}
	return fmt.Errorf("load the kubeconfig: it has no context %q: set --context to one of %s", name,
		strings.Join(slices.Sorted(maps.Keys(config.Contexts)), ", "))
}

// hideLogin moves a login from the server's URL, which is printed, to the client's fields for it.
func hideLogin(config *rest.Config) {
	server, err := url.Parse(config.Host)
	if err != nil || server.User == nil {
		return
	}
	config.Username = server.User.Username()
	config.Password, _ = server.User.Password()
	server.User = nil
	config.Host = server.String()
}

// ClusterUID reads the identity of the cluster: the uid of namespace kube-system, which outlives every other name of
// it. The error says what to do.
func (c *Client) ClusterUID(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	uid, err := readClusterUID(ctx, c.rest.Get())
	if err != nil {
		return "", ExplainServerError(c.host, err)
	}
	return uid, nil
}

// ExplainServerError says in plain words why a request to the API server failed, and what to do.
func ExplainServerError(host string, err error) error {
	var network *url.Error
	var certificate *tls.CertificateVerificationError
	other := otherServer(err)
	switch {
	case other != "" && !apierrors.IsUnauthorized(err):
		return fmt.Errorf("the server %s answers with %s, not as a Kubernetes API server: check the kubeconfig's server and context, and any proxy in front of it", host, other)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server %s refuses the credentials: %w: renew the token or certificate of the kubeconfig's user", host, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the API server %s forbids a request: %w: bind a role that allows it to this user", host, err)
	case errors.As(err, &certificate):
		return fmt.Errorf("trust the API server %s: %w: correct server or certificate-authority-data of the kubeconfig's cluster", host, certificate.Err)
	case errors.As(err, &network):
		cause := network.Err
		if system, is := errors.AsType[*os.SyscallError](cause); is {
			cause = system.Err // without the address, which the message has already
		}
		return fmt.Errorf("reach the API server %s: %w: check the kubeconfig's server and context, and that it is up", host, cause)
	}
	return fmt.Errorf("ask the API server %s: %w", host, err)
}

// otherServer says what a server has answered that is no API server, such as another service, or a proxy's error page;
// "" if it may be one. client-go has no error value for the former.
func otherServer(err error) string {
	rest, found := strings.CutPrefix(err.Error(), "serializer for ")
	if kind, missing := strings.CutSuffix(rest, " doesn't exist"); found && missing {
		if strings.HasPrefix(kind, "text/html") {
			return "a web page"
		}
		return kind
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeUnexpectedServerResponse && strings.HasPrefix(strings.TrimSpace(cause.Message), "<") {
			return fmt.Sprintf("a web page (status %d)", status.Status().Code)
		}
	}
	return ""
}

// AwaitReady returns when the API server says that it is ready, or an error after half a minute. A server that has just
// started answers before it serves custom resources: what it does not tell then is not gone.
func (c *Client) AwaitReady(ctx context.Context) error {
	ask := func() error {
		ctx, cancel := context.WithTimeout(ctx, askTime)
		defer cancel()
		err := c.rest.Get().AbsPath("/readyz").Do(ctx).Error()
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			return nil // a server that does not say so counts as ready
		}
		return err
	}
	patience := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond), backoff.WithMaxInterval(time.Second), backoff.WithMaxElapsedTime(askTime),
	)
	if err := backoff.Retry(ask, backoff.WithContext(patience, ctx)); err != nil {
		return fmt.Errorf("wait for the API server to be ready: %w", ExplainServerError(c.host, err))
	}
	return nil
}
