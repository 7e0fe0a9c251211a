package source

import (
	"cmp"
	"context"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// Query says which objects to list.
type Query struct {
	Stream    change.Stream
	Selection Selection
	Keep      Keep
	// Exactly is the resourceVersion to list at; "" is the present one.
	Exactly string
}

// ExpiredError says that the server does not have the asked version any more.
type ExpiredError struct {
	Stream  change.Stream
	Version string
	Err     error
}

func (e *ExpiredError) Error() string {
	return fmt.Sprintf("list %s at resourceVersion %s: the server does not have it any more: %v", e.Stream, e.Version, e.Err)
}

func (e *ExpiredError) Unwrap() error { return e.Err }

// List hands each object on, as a record of op Sync, and returns the version that all of them are of. A list whose
// pages expire while they are read is begun again: begin is called before each attempt. It returns an *ExpiredError
// where the server does not have the asked version.
func (c *Client) List(ctx context.Context, q Query, begin func(), each func(*change.Record) error) (version string, err error) {
	for range maxRestarts {
		begin()
		version, err = c.listAll(ctx, q, each)
		if err == nil || !isGone(err) || q.Exactly != "" {
			break
		}
	}
	switch {
	case err == nil:
		return version, nil
	case isGone(err) && q.Exactly != "":
		return "", &ExpiredError{q.Stream, q.Exactly, err}
	}
	return "", fmt.Errorf("list %s: %w", q.Stream, err)
}

func (c *Client) listAll(ctx context.Context, q Query, each func(*change.Record) error) (version string, err error) {
	all := collection{c, q.Stream, q.Selection, q.Keep}
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
		p.exactly = meta.ResourceVersion // of all its pages
		if p.token = meta.Continue; p.token == "" {
			return meta.ResourceVersion, nil
		}
	}
}
