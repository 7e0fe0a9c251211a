package source

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// inClusterName is the cluster's name where no kubeconfig gives one.
const inClusterName = "kubernetes"

// askTime is how long a question may take before the start. A server that never answers would be waited for in silence.
const askTime = 30 * time.Second

// LoadKubeconfig follows kubectl's rules: the file, or KUBECONFIG's merged files, or ~/.kube/config, or the service
// account of the pod. It returns the connection and the name of the context in use, "kubernetes" inside a cluster.
func LoadKubeconfig(file, contextName string) (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	overrides := &clientcmd.ConfigOverrides{CurrentContext: contextName, ClusterDefaults: clientcmdapi.Cluster{}}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
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

// Namespace is that of the pod, or of the kubeconfig's context, by the same rules.
func Namespace(file, contextName string) (string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	name, _, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: contextName}).Namespace()
	if err != nil {
		return "", kubeconfigError(file, err)
	}
	return name, nil
}

// kubeconfigError says what is wrong with the kubeconfig, without the path that os puts around its cause.
func kubeconfigError(file string, err error) error {
	what := "load the kubeconfig"
	if file != "" {
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

// hideLogin moves a login out of the server's URL to where the client keeps it: the URL is printed.
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
func ClusterUID(ctx context.Context, config *rest.Config) (string, error) {
	config = rest.CopyConfig(config)
	config.Timeout = askTime
	client, err := newRESTClient(config)
	if err != nil {
		return "", err
	}
	uid, err := readClusterUID(ctx, client.Get())
	if err != nil {
		return "", ExplainServerError(config.Host, err)
	}
	return uid, nil
}

// ExplainServerError says in a person's words why the API server could not be asked, and what to do.
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
		return fmt.Errorf("reach the API server %s: %w: check the kubeconfig's server and context, and that it is up", host, withoutAddress(network.Err))
	}
	return fmt.Errorf("ask the API server %s: %w", host, err)
}

// withoutAddress is the system's part of an error of a connection: the message has the address already.
func withoutAddress(err error) error {
	var system *os.SyscallError
	if errors.As(err, &system) {
		return system.Err
	}
	return err
}

// otherServer says with what a server answers that is no API server, such as another service's port, or a proxy's page
// of errors; "" where nothing tells that it is none. client-go has no error value for the first of the two.
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
