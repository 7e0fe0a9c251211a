package objecttype

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/selection"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/format/openapi"
	"github.com/kubecdc/kubecdc/internal/format/typed"
	"github.com/kubecdc/kubecdc/internal/shape/transform"
	"github.com/kubecdc/kubecdc/internal/source"
)

// Types are those of the API server's objects as the rules of one sink leave them.
type Types struct {
	cluster *cluster.Cluster
	sink    *config.Sink
	server  *documents
	notice  func(text string)
}

// NewTypes asks nothing yet. The notice says what is not read.
func NewTypes(c *cluster.Cluster, s *config.Sink, access *source.Access, notice func(text string)) *Types {
	return &Types{c, s, &documents{access: access, age: c.Look / 2}, notice}
}

// noDocument is the stamp of a type that the server does not describe.
const noDocument = "none"

// Of is as in registry.Types.
func (t *Types) Of(ctx context.Context, resource change.Resource, before string) (*typed.Type, string, error) {
	document, hash, err := t.server.of(ctx, resource, before)
	if err != nil {
		return nil, "", err
	}
	if document == nil {
		return nil, cmp.Or(hash, noDocument), nil
	}
	streams := t.cluster.StreamsThat(func(s *selection.Selected) bool { return s.Stream.Resource.String() == resource.String() })
	of, err := BehindRules(document, resource, streams, t.sink)
	if of == nil && err == nil && document.LeftOut > 0 {
		t.notice(fmt.Sprintf("does not read the API server's schema of %s: it, or all of its group, is too large; objects of it have no columns", resource.String()))
	}
	return of, hash, err
}

// documents are the schemas that the server publishes. They may be asked by several goroutines.
type documents struct {
	access *source.Access
	age    time.Duration // of an index that still counts

	mu    sync.Mutex // guards the following; held during a question
	index source.OpenAPIIndex
	read  time.Time
	known string // the hash of the document
	last  *openapi.Document
}

// of is the document of the resource, and the hash that tells it from what it was before, "" where there is none. The
// document is nil where it is as before. Several resources of one are asked for one after the other.
func (d *documents) of(ctx context.Context, resource change.Resource, before string) (*openapi.Document, string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.index == nil || time.Since(d.read) > d.age {
		index, err := d.access.OpenAPIIndex(ctx)
		if err != nil {
			return nil, "", err
		}
		d.index, d.read, d.last, d.known = index, time.Now(), nil, "" // a document is large
	}
	hash := d.index.Hash(resource)
	if hash == "" || hash == before {
		return nil, hash, nil
	}
	if d.known != hash {
		document, err := read(ctx, d.access, resource)
		if err != nil {
			return nil, "", err
		}
		d.last, d.known = document, hash
	}
	return d.last, hash, nil
}

// BehindRules is the type of the objects of the streams, which are of one resource, after the rules, also of the sink;
// nil is none. The type is nil where the server does not describe the kind.
func BehindRules(document *openapi.Document, resource change.Resource, streams []selection.Selected, s *config.Sink) (*typed.Type, error) {
	rules, managedFields := selection.CommonRules(streams)
	of := document.Type(resource.Group, resource.Version, resource.Kind, openapi.Options{ManagedFields: managedFields})
	if of == nil {
		return nil, nil
	}
	all := []transform.Rules{rules}
	if s != nil {
		all = append(all, selection.SinkRules(s, nil))
	}
	for _, one := range all {
		var err error
		if of, err = of.Narrow(one); err != nil {
			return nil, fmt.Errorf("the rules of %s: %w", resource.String(), err)
		}
	}
	return of, nil
}

// Schemas are those of the server, each document asked for once, and only where there is a path to look up.
type Schemas struct {
	access *source.Access
	asked  map[string]*openapi.Document // by group and version; nil could not be had
	Silent []string                     // the groups and versions that the server does not tell the schemas of, or too many
}

// NewSchemas asks nothing yet.
func NewSchemas(access *source.Access) *Schemas {
	return &Schemas{access: access, asked: map[string]*openapi.Document{}}
}

// Of is nil where the server does not tell.
func (s *Schemas) Of(ctx context.Context, resource change.Resource) *openapi.Document {
	at := strings.TrimPrefix(resource.Group+"/"+resource.Version, "/")
	if document, asked := s.asked[at]; asked {
		return document
	}
	document, err := read(ctx, s.access, resource)
	switch {
	case err != nil:
		s.Silent = append(s.Silent, at)
	case document.LeftOut > 0:
		s.Silent = append(s.Silent, fmt.Sprintf("%d kinds of %s", document.LeftOut, at))
	}
	s.asked[at] = document
	return document
}

// read is nil beside an error.
func read(ctx context.Context, access *source.Access, resource change.Resource) (document *openapi.Document, err error) {
	err = access.OpenAPI(ctx, resource, func(from io.Reader) (err error) {
		document, err = openapi.Read(from)
		return err
	})
	if err != nil {
		return nil, err
	}
	return document, nil
}
