package source

import (
	"context"
	"io"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// collection is what one stream reads at the server: the objects of a resource that the selection chooses.
type collection struct {
	client    *Client
	stream    change.Stream
	selection Selection
	keep      Keep
}

// within is the part of the collection within the limits: a limited one may be of another namespace than all.
func (c collection) within(l change.Limits) collection {
	if c.selection = c.selection.within(l); l.Namespace != "" {
		c.stream.Namespace = l.Namespace
	}
	return c
}

// options say how the objects are cut from the wire.
func (c *collection) options() frame.Options {
	return frame.Options{
		Kind: c.stream.Resource.Kind, APIVersion: c.stream.Resource.APIVersion(),
		KeepManagedFields: c.keep.ManagedFields, KeepLastApplied: c.keep.LastApplied, Actor: c.keep.Actor,
	}
}

func (c *collection) request() *rest.Request { return c.client.request(&c.stream, c.selection) }

// pageSize is how many objects one page of a list holds at most; client-go's pager asks for as many.
const pageSize = 500

// page says which page of which list is wanted.
type page struct {
	limit   int
	exactly string // a resourceVersion; "" is the newest
	token   string // the continue token of the page before
}

// list reads one page and hands its objects to each, in the server's order, without holding the page.
func (c *collection) list(ctx context.Context, p page, each func(frame.Object) error) (frame.ListMeta, error) {
	request := c.request().Param("limit", strconv.Itoa(p.limit))
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

// look asks for one object at exactly the version, and returns the version of the answer.
func (c *collection) look(ctx context.Context, key change.Key, exactly string) (object frame.Object, found bool, version string, err error) {
	one := c.within(change.Limits{Namespace: key.Namespace, Name: key.Name})
	meta, err := one.list(ctx, page{limit: 1, exactly: exactly}, func(listed frame.Object) error {
		object, found = listed, true
		return listed.Err
	})
	return object, found, meta.ResourceVersion, err
}

// watch opens a watch from the version.
func (c *collection) watch(ctx context.Context, version string, timeoutSeconds *int64) (io.ReadCloser, error) {
	request := c.request().
		Param("watch", "true").
		Param("allowWatchBookmarks", "true").
		Param("resourceVersion", version)
	if timeoutSeconds != nil {
		request = request.Param("timeoutSeconds", strconv.FormatInt(c.client.guard.watchSeconds(*timeoutSeconds), 10))
	}
	return request.Stream(ctx)
}
