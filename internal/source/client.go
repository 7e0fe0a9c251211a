package source

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/internal/change"
)

// knocks is how often all streams together try a server that nobody reaches: once it answers, each of them goes on at
// once. Were it left to the Reflector's backoff, which grows for as long as the outage lasts, each would wait as long
// again.
const knocks = 250 * time.Millisecond

// outageTime is how long an outage lasts until it is told again.
const outageTime = 10 * time.Second

// IsUnreachable says that the server has not answered at all.
func IsUnreachable(err error) bool {
	var op *net.OpError
	var late interface{ Timeout() bool }
	return errors.As(err, &op) || errors.As(err, &late) && late.Timeout() || utilnet.IsProbableEOF(err)
}

// awaitAnswer returns once the server answers anything, or with an error after outageTime. All streams wait for the
// same answer.
func (c *Client) awaitAnswer(ctx context.Context) error {
	_, err := c.reached.get(ctx, time.Time{}, 0, func(ctx context.Context) (struct{}, error) {
		ctx, cancel := context.WithTimeout(ctx, outageTime)
		defer cancel()
		return struct{}{}, backoff.Retry(func() error {
			err := c.rest.Get().AbsPath("/livez").MaxRetries(0).Do(ctx).Error()
			if IsUnreachable(err) {
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

// Selection is what of a resource is wanted. The API server does the selecting.
type Selection struct {
	LabelSelector string
	FieldSelector string
}

// String is the selection's text in a saved position; "" selects everything.
func (s Selection) String() string {
	if s == (Selection{}) {
		return ""
	}
	return "labels=" + s.LabelSelector + "&fields=" + s.FieldSelector
}

// Client reads raw lists and watches. Its answers are JSON as the server wrote them.
type Client struct {
	rest    *rest.RESTClient
	guard   *guard
	uid     shared[string]   // of the cluster
	reached shared[struct{}] // whether it answers

	counted   shared[int]      // servers
	redialled shared[struct{}] // that requests go through other connections
	defined   shared[*Definitions]
}

// maxHTTP1Streams is the most streams that get a connection each. HTTP/1.1 leaves a stalled watch's bytes to the
// kernel, where HTTP/2 buffers up to 4 MiB a stream in this process, and costs less CPU an event; with many streams one
// shared connection wins.
const maxHTTP1Streams = 16

// maxRequests a second is what all streams together may ask of the server, after a burst of twice as many. A stream
// asks rarely and in sequence, and few begin at once (Gate), so a server that is slow is asked less.
const maxRequests = 500

// NewClient returns a client for the configuration. streams is how many watches will be open at once; it decides
// between HTTP/1.1 and HTTP/2.
func NewClient(config *rest.Config, streams int) (*Client, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = maxRequests, 2*maxRequests
	config.Dial = aheadDialer(config.Dial)
	if streams <= maxHTTP1Streams && len(config.NextProtos) == 0 {
		config.NextProtos = []string{"http/1.1"}
	}
	client, guard, err := newRESTClient(config, 0)
	if err != nil {
		return nil, err
	}
	return &Client{rest: client, guard: guard}, nil
}

// newRESTClient returns a client that sends and takes JSON, and what bounds its requests; a timeout of 0 is none of any
// request. It is client-go's generic one: the typed clients, and that of discovery, bring the code of all types of
// Kubernetes with them, a fifth of the binary.
func newRESTClient(config *rest.Config, timeout time.Duration) (*rest.RESTClient, *guard, error) {
	config = rest.CopyConfig(config)
	config.Timeout = timeout
	scheme := runtime.NewScheme() // of the one type that is ever decoded: the metav1.Status of a failed request
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	config.ContentConfig = rest.ContentConfig{
		AcceptContentTypes:   runtime.ContentTypeJSON,
		ContentType:          runtime.ContentTypeJSON,
		GroupVersion:         &schema.GroupVersion{Version: "v1"},
		NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
	}
	guard, err := newGuard(config)
	if err != nil {
		return nil, nil, fmt.Errorf("build a client for %s: %w", config.Host, err)
	}
	client, err := rest.UnversionedRESTClientForConfigAndClient(config, &http.Client{Transport: guard, Timeout: config.Timeout})
	if err != nil {
		return nil, nil, fmt.Errorf("build a client for %s: %w", config.Host, err)
	}
	return client, guard, nil
}

// decodeAnswer decodes the JSON of the answer. Of what is no JSON the error is client-go's, which names its type.
func decodeAnswer(answer rest.Result, into any) error {
	body, err := answer.Raw()
	if err != nil {
		return answer.Error() // with the server's own words
	}
	if err := json.Unmarshal(body, into); err != nil {
		return cmp.Or(answer.Into(new(runtime.Unknown)), err)
	}
	return nil
}

// request is a GET of the stream's collection. The reflector has rules of its own for what to try again, so the client
// retries nothing.
func (c *Client) request(stream *change.Stream, selection Selection) *rest.Request {
	request := c.rest.Get().AbsPath(stream.Resource.Path(stream.Namespace)).MaxRetries(0)
	if selection.LabelSelector != "" {
		request = request.Param("labelSelector", selection.LabelSelector)
	}
	if selection.FieldSelector != "" {
		request = request.Param("fieldSelector", selection.FieldSelector)
	}
	return request
}

// within adds the limits to the selection.
func (s Selection) within(l change.Limits) Selection {
	if s.LabelSelector = both(s.LabelSelector, l.Selector); l.Name != "" {
		s.FieldSelector = both(s.FieldSelector, fields.OneTermEqualSelector("metadata.name", l.Name).String())
	}
	return s
}

// cached chooses the same, with a field selector: see origin.watchable. No object has the name.
func (s Selection) cached() Selection {
	s.FieldSelector = both(s.FieldSelector, fields.OneTermNotEqualSelector("metadata.name", ".").String())
	return s
}

// both is the selector of what both choose.
func both(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "," + b
}

func readClusterUID(ctx context.Context, request *rest.Request) (string, error) {
	var namespace metav1.PartialObjectMetadata
	if err := decodeAnswer(request.AbsPath("/api/v1/namespaces", metav1.NamespaceSystem).Do(ctx), &namespace); err != nil {
		return "", err
	}
	if namespace.UID == "" {
		return "", fmt.Errorf("namespace %s has no uid", metav1.NamespaceSystem)
	}
	return string(namespace.UID), nil
}

// readDefinitions asks for no version, so that etcd answers, or a cache that is as new.
func readDefinitions(ctx context.Context, request *rest.Request) (*Definitions, error) {
	const metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	var list metav1.PartialObjectMetadataList
	path := "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	if err := decodeAnswer(request.AbsPath(path).SetHeader("Accept", metadata).Do(ctx), &list); err != nil {
		return nil, err
	}
	if !change.IsVersion(list.ResourceVersion) {
		return nil, fmt.Errorf("its list of customresourcedefinitions has the resourceVersion %.40q", list.ResourceVersion)
	}
	all := &Definitions{Version: list.ResourceVersion, byName: map[string]definition{}}
	for i := range list.Items {
		one := &list.Items[i]
		all.byName[one.Name] = definition{one.ResourceVersion, one.Generation}
	}
	return all, nil
}

// isGone says that the server no longer has the version that was asked for.
func isGone(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// Definitions are the CustomResourceDefinitions of a cluster, as etcd has them. That a server does not serve a resource
// proves nothing: it may be one of several of different versions, or not know the definition yet. That the definition
// is gone proves that all objects are.
type Definitions struct {
	Version string // of the list
	byName  map[string]definition
}

// definition is one that exists.
type definition struct {
	version    string // of its last write
	generation int64  // counts the changes of its spec
}

// Generation is that of the resource's definition, false where there is none.
func (d *Definitions) Generation(resource change.Resource) (generation int64, found bool) {
	one, found := d.byName[resource.String()]
	return one.generation, found
}

// maxAge is how old an answer of the server may be that serves again: thousands of streams that begin together would
// ask the same question thousands of times.
const maxAge = time.Second

// shared is a question that all streams ask the server. One request at a time is under way, and serves everybody who
// waits for it or comes soon after.
type shared[T any] struct {
	once         sync.Once
	turn         chan struct{} // buffered 1: who is in it asks. It guards the following
	began, ended time.Time     // of the newest request; zero before the first one
	answer       T
	err          error
}

// get returns an answer to a request that began after since, and is of at most the age. ask is the request. A failure
// serves those alone who waited for it, and a request that is called off nobody but who asked.
func (q *shared[T]) get(
	ctx context.Context, since time.Time, age time.Duration, ask func(context.Context) (T, error),
) (answer T, err error) {
	came := time.Now()
	q.once.Do(func() { q.turn = make(chan struct{}, 1) })
	select {
	case q.turn <- struct{}{}:
		defer func() { <-q.turn }()
	case <-ctx.Done():
		return answer, context.Cause(ctx)
	}
	waited, isFresh := q.ended.After(came), q.err == nil && time.Since(q.began) <= age
	if (waited || isFresh) && q.began.After(since) {
		return q.answer, q.err
	}
	began := time.Now()
	if answer, err = ask(ctx); err == nil || ctx.Err() == nil {
		q.began, q.ended, q.answer, q.err = began, time.Now(), answer, err
	}
	return answer, err
}

const (
	// minAhead is what a quiet connection costs.
	minAhead = 8 << 10
	// maxAhead is the most that is asked of a connection at once, and that is in memory of a watch that stands still.
	// TLS asks for 32 KiB; the kernel's work for each answer, and waiting for the next, cost more than to copy the
	// bytes once more.
	maxAhead = 512 << 10
)

// dialFunc opens connections, as rest.Config.Dial.
type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// aheadDialer returns one whose connections are read ahead. dial opens them; nil is client-go's own way.
func aheadDialer(dial dialFunc) dialFunc {
	if dial == nil {
		dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &aheadConn{Conn: conn, buf: make([]byte, minAhead)}, nil
	}
}

// aheadConn is a connection that takes all that is there, as far as it has room, and hands it out piece by piece. Its
// room grows while it is filled, and shrinks while little comes. Read is for one goroutine at a time.
type aheadConn struct {
	net.Conn
	buf  []byte // for the next read
	held []byte // what was read and is not handed out yet
	err  error  // of the last read, due when held is used up
}

// Read is net.Conn's. As of a bare connection, it blocks only while nothing is there.
func (c *aheadConn) Read(p []byte) (int, error) {
	if len(c.held) == 0 && c.err == nil {
		c.fill()
	}
	if len(c.held) == 0 {
		err := c.err
		c.err = nil // a deadline may be set anew
		return 0, err
	}
	n := copy(p, c.held)
	c.held = c.held[n:]
	return n, nil
}

// fill reads once, and makes the room for the next time. It may block for hours, so nothing else stays in memory.
func (c *aheadConn) fill() {
	c.held = nil
	n, err := c.Conn.Read(c.buf)
	c.held, c.err = c.buf[:n], err
	switch size := len(c.buf); {
	case n == size && size < maxAhead:
		c.buf = make([]byte, 2*size)
	case n < size/32 && size > minAhead:
		c.buf = make([]byte, size/2)
	}
}
