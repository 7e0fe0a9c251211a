package source

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// Query says which objects List lists.
type Query struct {
	Stream    change.Stream
	Selection Selection
	// Exactly is the resourceVersion to list at; "" is the present one.
	Exactly string
}

// List hands each object on, as a record of op Sync, and returns the version that all of them are of. A list whose
// pages expire while they are read is begun again: begin is called before each attempt. The
// error satisfies IsGone where the server does not have the asked version.
func (c *Client) List(ctx context.Context, q Query, begin func(), each func(*change.Record) error) (version string, err error) {
	for range maxRestarts {
		begin()
		version, err = c.listAll(ctx, q, each)
		if err == nil || !IsGone(err) || q.Exactly != "" {
			break
		}
	}
	if err != nil {
		return "", fmt.Errorf("list %s: %w", q.Stream, err)
	}
	return version, nil
}

func (c *Client) listAll(ctx context.Context, q Query, each func(*change.Record) error) (version string, err error) {
	all := collection{c, q.Stream, q.Selection, Keep{}}
	p := page{limit: pageSize, exactly: q.Exactly}
	for {
		meta, err := all.list(ctx, p, func(object frame.Object) error {
			if object.Name == "" {
				return cmp.Or(object.Err, errNoName)
			}
			rec := &change.Record{
				Stream: &q.Stream, Op: change.Sync, Key: change.Key{Namespace: object.Namespace, Name: object.Name},
				UID: object.UID, ResourceVersion: object.ResourceVersion, Object: object.JSON,
			}
			if object.Err != nil {
				markUnreadable(rec)
			}
			return each(rec)
		})
		if err != nil {
			return "", err
		}
		p.exactly = meta.ResourceVersion // all pages must be of one version
		if p.token = meta.Continue; p.token == "" {
			return meta.ResourceVersion, nil
		}
	}
}

// origin is what one Informer knows of the API server: which cluster it serves, where it stands, and which answers
// count.
type origin struct {
	collection collection
	unsorted   atomic.Bool // its lists are not in the inventory's order
	inexact    int         // so many lists in a row were not of the version that was asked for

	version string // where it stood when it was asked last
	asked   time.Time
	watched string // where it stood when the last watch began that worked

	// After the end of a watch, and after a failure, another server may answer. For any goroutine:
	suspect atomic.Bool               // something failed since the proof was asked for
	since   atomic.Pointer[time.Time] // answers to earlier questions do not count; nil if all do
}

// cluster is the uid of the cluster that the server serves, that of namespace kube-system, asked for after since.
func (o *origin) cluster(ctx context.Context, since time.Time) (string, error) {
	client := o.collection.client
	uid, err := client.uid.get(ctx, since, maxAge, func(ctx context.Context) (string, error) {
		return readClusterUID(ctx, client.rest.Get().MaxRetries(0))
	})
	if err != nil {
		return "", fmt.Errorf("ask the server which cluster it serves: %w", err)
	}
	return uid, nil
}

// refutes asks for the object of the proof at exactly the position, and says whether the answer is of another history.
// A restored etcd that has overtaken the position has the object at an older version, or at one that was never
// delivered. refutes is never true in the same history. It is false if the server no longer has the version, cannot
// list at one, or the object was not changed since the backup; then the next resync finds what differs. After any other
// failure it returns an error: a watch from the position could be of another history.
func (o *origin) refutes(ctx context.Context, position string, p proof) (bool, error) {
	if p.version == "" {
		return false, nil
	}
	var object *frame.Object
	one := o.collection.within(change.Limits{Namespace: p.key.Namespace, Name: p.key.Name})
	_, err := one.list(ctx, page{limit: 1, exactly: position}, func(listed frame.Object) error {
		object = &listed
		return listed.Err
	})
	if _, inexact := errors.AsType[*inexactError](err); inexact || IsGone(err) || apierrors.IsBadRequest(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask the server for %s at resourceVersion %s: %w", p.key, position, err)
	}
	o.suspect.Store(false)
	return !p.holds(object), nil
}

// present is where the server stands, by a list of one object.
func (o *origin) present(ctx context.Context) (string, error) {
	if o.asked.After(o.doubted()) && time.Since(o.asked) <= maxAge {
		return o.version, nil
	}
	return o.ask(ctx, o.collection)
}

// watchable is where the server stands, once it serves watches from there. A server builds the watch cache of a custom
// resource at the first request, and refuses a watch from an earlier version: a first start would begin with a gap.
// While it does so, it answers a list with a field selector with 429 (KEP-4568); without one etcd answers.
func (o *origin) watchable(ctx context.Context) (version string, err error) {
	cached := o.collection
	cached.selection = cached.selection.cached()
	err = backoff.Retry(func() error {
		if version, err = o.ask(ctx, cached); err == nil || apierrors.IsTooManyRequests(err) {
			return err
		}
		return backoff.Permanent(err)
	}, backoff.WithContext(backoff.NewExponentialBackOff( // it takes some 100 ms; where more, others have their turn
		backoff.WithInitialInterval(100*time.Millisecond), backoff.WithMaxElapsedTime(2*time.Second),
	), ctx))
	if apierrors.IsBadRequest(err) { // an aggregated API server that has no such selector
		return o.present(ctx)
	}
	return version, err
}

// ask asks where the server stands, and remembers it.
func (o *origin) ask(ctx context.Context, of collection) (string, error) {
	asked := time.Now()
	version, err := o.askVersion(ctx, of)
	if version != "" {
		o.version, o.asked = version, asked
	}
	return version, err
}

// askVersion asks the server where it stands.
func (o *origin) askVersion(ctx context.Context, of collection) (string, error) {
	var first *frame.Object
	meta, err := of.list(ctx, page{limit: 1}, func(object frame.Object) error { first = &object; return nil })
	switch {
	case err != nil:
		return "", fmt.Errorf("ask the server for the version of %s: %w", o.collection.stream, err)
	case !change.IsVersion(meta.ResourceVersion):
		return "", o.unordered("its list has the resourceVersion %.40q", meta.ResourceVersion)
	case first != nil:
		err = o.checkVersion(first, meta.ResourceVersion)
	}
	return meta.ResourceVersion, err
}

// doubt notes that something failed: from now on another server may answer.
func (o *origin) doubt() {
	o.suspect.Store(true)
	o.forgetAnswers()
}

// forgetAnswers makes the stream ask the server anew.
func (o *origin) forgetAnswers() {
	now := time.Now()
	o.since.Store(&now)
}

// doubted is when the last watch ended, or the last failure was: only answers to later questions count for the next
// watch.
func (o *origin) doubted() time.Time {
	if since := o.since.Load(); since != nil {
		return *since
	}
	return time.Time{}
}

// proof is the newest record that the watch brought: at the position, the server has its object in exactly this state,
// unless the history is another one. It is pure. The zero value proves nothing.
type proof struct {
	key          change.Key
	uid, version string
	deleted      bool
}

// proofOf is the proof by a record of the watch.
func proofOf(rec *change.Record) proof {
	return proof{key: rec.Key, uid: rec.UID, version: rec.ResourceVersion, deleted: rec.Op == change.Deleted}
}

// holds says whether the server's object is as it was told; nil if the server has none.
func (p proof) holds(object *frame.Object) bool {
	if p.deleted || object == nil {
		return p.deleted && object == nil
	}
	return object.UID == p.uid && object.ResourceVersion == p.version
}

// collection is what one stream reads: the objects of a resource that the selection chooses.
type collection struct {
	client    *Client
	stream    change.Stream
	selection Selection
	keep      Keep
}

// within is the part of the collection within the limits, whose namespace replaces the stream's.
func (c collection) within(l change.Limits) collection {
	if c.selection = c.selection.within(l); l.Namespace != "" {
		c.stream.Namespace = l.Namespace
	}
	return c
}

// options say what is cut from the objects as they are read.
func (c *collection) options() frame.Options {
	return frame.Options{
		Kind: c.stream.Resource.Kind, APIVersion: c.stream.Resource.APIVersion(),
		KeepManagedFields: c.keep.ManagedFields, KeepLastApplied: c.keep.LastApplied, Actor: c.keep.Actor,
	}
}

// pageSize is how many objects one page of a list holds at most; client-go's pager asks for as many.
const pageSize = 500

// page identifies a page of a list.
type page struct {
	limit   int
	exactly string // a resourceVersion; "" is the newest
	token   string // the continue token of the page before
}

// list reads one page and passes its objects to each, in the server's order, without holding the page in memory.
func (c *collection) list(ctx context.Context, p page, each func(frame.Object) error) (frame.ListMeta, error) {
	request := c.client.request(&c.stream, c.selection).Param("limit", strconv.Itoa(p.limit))
	switch {
	case p.token != "":
		request = request.Param("continue", p.token)
	case p.exactly != "":
		request = request.Param("resourceVersion", p.exactly).
			Param("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
	}
	body, err := request.Stream(ctx)
	if err != nil {
		return frame.ListMeta{}, err
	}
	defer body.Close()
	meta, err := frame.ScanList(body, c.options(), each)
	if err == nil && p.exactly != "" && meta.ResourceVersion != p.exactly {
		err = &inexactError{p.exactly, meta.ResourceVersion}
	}
	return meta, err
}

// watch opens a watch from the version.
func (c *collection) watch(ctx context.Context, version string, timeoutSeconds *int64) (io.ReadCloser, error) {
	request := c.client.request(&c.stream, c.selection).
		Param("watch", "true").
		Param("allowWatchBookmarks", "true").
		Param("resourceVersion", version)
	if timeoutSeconds != nil {
		request = request.Param("timeoutSeconds", strconv.FormatInt(c.client.guard.watchSeconds(*timeoutSeconds), 10))
	}
	return request.Stream(ctx)
}

var errUnsorted = errors.New("the list is not sorted")

var errChanged = errors.New("the list differs from what the sinks have")

// errWatchEnded says that a page does not count.
var errWatchEnded = errors.New("the watch has ended that the page was read beside")

var errOtherCluster = errors.New("another cluster answers at the server's address")

// isRange says whether the token continues the list at a key after the last one, as a server's does that reads a range
// of etcd's keys (k8s.io/apiserver, pkg/storage/continue.go). A token of another form proves nothing.
func isRange(token, namespace string, last []byte) bool {
	text, err := base64.RawURLEncoding.DecodeString(token)
	var next struct {
		Version string `json:"v"`
		Start   string `json:"start"`
	}
	if err != nil || json.Unmarshal(text, &next) != nil || next.Version != "meta.k8s.io/v1" || len(last) == 0 {
		return false
	}
	start := strings.TrimPrefix(next.Start, "/")
	if namespace != "" {
		start = namespace + "/" + start
	}
	return start > string(last)
}

// maxPassed bounds the suspects of a sink, which wait for the watch to pass the list (I6). With more, the reader waits.
const maxPassed = 1 << 13

// slowPage is how long a page may take before the next ones become smaller: an API server ends a request after a
// minute.
const slowPage = 15 * time.Second

// firstPage is the limit of the smallest page, and of the first page of a full snapshot, so that its progress shows
// soon.
const firstPage = 16

// nextLimit is the limit of the page after one that took so long. It grows if a page of four times the size would not
// be slow either.
func nextLimit(limit int, took time.Duration) int {
	switch {
	case took > slowPage:
		return max(limit/2, firstPage)
	case took < slowPage/4:
		return min(4*limit, pageSize)
	}
	return limit
}

// maxRestarts is how often List begins when pages expire, and how many inexact lists in a row refuse a stream.
const maxRestarts = 5

// UnorderedError says that the resourceVersions of a stream cannot be ordered (KEP-5504).
type UnorderedError struct {
	Stream change.Stream
	Why    string
}

func (e *UnorderedError) Error() string {
	return fmt.Sprintf("read %s: %s: nobody can tell what is new (KEP-5504), so the stream is refused: take the resource out of the configuration, or have its server fixed, and start again",
		e.Stream, e.Why)
}

// inexactError says that a server answered a list at exactly one version with a list of another.
type inexactError struct{ asked, got string }

func (e *inexactError) Error() string {
	return fmt.Sprintf("the server listed resourceVersion %.40q where exactly %.40q was asked for", e.got, e.asked)
}

// unordered is an *UnorderedError.
func (o *origin) unordered(format string, args ...any) error {
	return &UnorderedError{o.collection.stream, fmt.Sprintf(format, args...)}
}

// checkVersion refuses what cannot be ordered, and an object that is newer than the list that it is in, whose version
// is list; "" is none.
func (o *origin) checkVersion(object *frame.Object, list string) error {
	version := object.ResourceVersion
	switch {
	case object.Err != nil && version == "":
		return nil // the part that cannot be read may have one
	case !change.IsVersion(version):
		return o.unordered("%s/%s has the resourceVersion %.40q", object.Namespace, object.Name, version)
	case list != "" && change.CompareVersions(version, list) > 0:
		return o.unordered("%s/%s has the resourceVersion %.40q in a list of %.40q", object.Namespace, object.Name, version, list)
	}
	return nil
}

// listed takes what a list at exactly one version ended with, and returns it. A server that answers with another one
// again and again is refused: its lists may lack what was changed in between.
func (o *origin) listed(err error) error {
	inexact, found := errors.AsType[*inexactError](err)
	switch {
	case err == nil:
		o.inexact = 0
	case found:
		if o.inexact++; o.inexact >= maxRestarts {
			return o.unordered("%v", inexact)
		}
	}
	return err
}

// An object that cannot be read does not end the stream: a gap takes its place, for its key if that can be read (I4).
// If not, a watch is opened again, since the frame may have been broken on its way, and the second time at the same
// position a comparison is due. In a list it is a gap of the stream.

// errNoName says that an item could be read, but has no name.
var errNoName = errors.New("an item of the list has no name")

// markUnreadable withholds the record of an object that cannot be read. A delete needs no object.
func markUnreadable(rec *change.Record) {
	if rec.Op == change.Deleted {
		rec.FinalStateUnknown = true
		return
	}
	rec.Withheld = change.Unreadable
}
