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

// knocks is how often all streams together try a server that does not answer. Once it does, each stream goes on at
// once; with the Reflector's backoff, which grows during an outage, each would wait about as long again.
const knocks = 250 * time.Millisecond

// outageTime is how often an outage is reported again.
const outageTime = 10 * time.Second

// IsUnreachable says that the server has not answered at all.
func IsUnreachable(err error) bool {
	var op *net.OpError
	var late interface{ Timeout() bool }
	return errors.As(err, &op) || errors.As(err, &late) && late.Timeout() || utilnet.IsProbableEOF(err)
}

// awaitAnswer returns once the server answers anything, or with an error after outageTime. All streams wait for one
// answer.
func (c *Client) awaitAnswer(ctx context.Context) error {
	_, err := c.reached.get(ctx, time.Time{}, 0, func(ctx context.Context) (struct{}, error) {
		ctx, cancel := context.WithTimeout(ctx, outageTime)
		defer cancel()
		return struct{}{}, backoff.Retry(func() error {
			err := c.rest.Get().AbsPath("/livez").MaxRetries(0).Do(ctx).Error()
			if IsUnreachable(err) {
				return err
			}
			return nil // even an error, or that this is forbidden, is an answer
		}, backoff.WithContext(backoff.NewConstantBackOff(knocks), ctx))
	})
	if err != nil {
		return fmt.Errorf("wait for the API server to answer: %w", err)
	}
	return nil
}

// Selection says which objects of a resource are wanted. The API server selects them.
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

// Client reads lists and watches as raw JSON, as the server wrote it.
type Client struct {
	host    string
	rest    *rest.RESTClient
	guard   *guard
	uid     shared[string]   // of the cluster
	reached shared[struct{}] // whether it answers

	counted   shared[int]      // how many servers there are
	redialled shared[struct{}] // to get other connections
	defined   shared[*Definitions]
}

// maxHTTP1Streams is the most streams that get a connection each. With HTTP/1.1 a stalled watch's bytes stay in the
// kernel, where HTTP/2 buffers up to 4 MiB a stream in this process, and an event costs less CPU; with many streams one
// shared connection is better.
const maxHTTP1Streams = 16

// maxRequests is how many requests a second all streams together may send, with a burst of twice as many. A stream asks
// rarely and in sequence, and few begin at once (Gate), so a slow server gets fewer.
const maxRequests = 500

// NewClient returns a client for the configuration. streams is how many watches will be open at once; it decides
// between HTTP/1.1 and HTTP/2. One of none, for questions alone, shares its connections with others like it.
func NewClient(config *rest.Config, streams int) (*Client, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst, config.Timeout = maxRequests, 2*maxRequests, 0
	if streams > 0 {
		readAhead(config)
	}
	if 0 < streams && streams <= maxHTTP1Streams && len(config.NextProtos) == 0 {
		config.NextProtos = []string{"http/1.1"}
	}
	client, guard, err := newRESTClient(config)
	if err != nil {
		return nil, err
	}
	return &Client{host: config.Host, rest: client, guard: guard}, nil
}

// newRESTClient returns a client that sends and takes JSON, and what bounds its requests. It is client-go's generic
// one: the typed clients, and that of discovery, bring the code of all types of Kubernetes with them, a fifth of the
// binary.
func newRESTClient(config *rest.Config) (*rest.RESTClient, *guard, error) {
	config = rest.CopyConfig(config)
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

// decodeAnswer decodes the JSON of the answer. If it is no JSON, the error is client-go's, which names its content
// type.
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

// request is a GET of the stream's collection, without retries: the Reflector has rules of its own for those.
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

// cached chooses the same objects with a field selector, for origin.watchable: no object is named ".".
func (s Selection) cached() Selection {
	s.FieldSelector = both(s.FieldSelector, fields.OneTermNotEqualSelector("metadata.name", ".").String())
	return s
}

// both is the selector of what both selectors choose.
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

// readDefinitions asks for no version, so that the answer is as new as etcd's.
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
	all := &Definitions{Version: list.ResourceVersion, byName: map[string]metav1.ObjectMeta{}}
	for i := range list.Items {
		one := &list.Items[i]
		all.byName[one.Name] = metav1.ObjectMeta{ResourceVersion: one.ResourceVersion, Generation: one.Generation}
	}
	return all, nil
}

// IsGone says that the server no longer has the version that was asked for.
func IsGone(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// Definitions are the CustomResourceDefinitions of a cluster, as etcd has them. A server that does not serve a resource
// proves nothing: servers may have different versions, or not know the definition yet. If the definition is gone, all
// its objects are.
type Definitions struct {
	Version string // of the list
	// byName has of each the version of its last write, and the generation, which counts the changes of its spec.
	byName map[string]metav1.ObjectMeta
}

// Generation is the generation of the resource's definition; found is false if there is none.
func (d *Definitions) Generation(resource change.Resource) (generation int64, found bool) {
	one, found := d.byName[resource.String()]
	return one.Generation, found
}

// maxAge is how old an answer may be to count again: otherwise thousands of streams that begin together would ask the
// same question thousands of times.
const maxAge = time.Second

// shared is a question that all streams ask the server. One request is under way at a time, and answers everybody who
// waits for it or comes soon after.
type shared[T any] struct {
	once         sync.Once
	turn         chan struct{} // buffered 1: whoever has it asks. It guards the following
	began, ended time.Time     // of the newest request; zero before the first one
	answer       T
	err          error
}

// get returns the answer to a request that began after since, and at most age ago. ask makes the request. A failure
// counts only for those who waited for it, and a request that ctx has ended only for its caller.
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
	// minAhead is how many bytes a quiet connection takes.
	minAhead = 8 << 10
	// maxAhead is the most bytes that are read from a connection at once, and that a stalled watch has in memory. TLS
	// asks for 32 KiB; system calls for so little cost more than to copy the bytes once more.
	maxAhead = 512 << 10
)

// readAhead has the configuration's connections be read ahead. Where it does not say how to open them, it is
// client-go's own way.
func readAhead(config *rest.Config) {
	dial := config.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &aheadConn{Conn: conn, buf: make([]byte, minAhead)}, nil
	}
}

// aheadConn is a connection that reads all that is there into a buffer, and hands it out piece by piece. The buffer
// grows while reads fill it, and shrinks while little comes. Read is for one goroutine at a time.
type aheadConn struct {
	net.Conn
	buf  []byte // for the next read
	held []byte // what was read and is not handed out yet
	err  error  // of the last read, due when held is used up
}

// Read implements net.Conn. As with a bare connection, it blocks only while nothing is there.
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

// fill reads once, and resizes the buffer for the next time. It may block for hours, so it keeps no other buffer.
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
