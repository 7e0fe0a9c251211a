package destination

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

// types are those of the API server's objects as the rules of one sink leave them. They may be asked by several
// goroutines.
type types struct {
	cluster *cluster.Cluster
	sink    *config.Sink
	client  *source.Client
	notice  func(text string) // says what is not read

	mu     sync.Mutex                   // guards the following; held during a question
	hashes func(change.Resource) string // nil before they were read
	read   time.Time
	known  string // the hash of the document
	last   *openapi.Document
}

// noDocument is the stamp of a type that the server does not describe.
const noDocument = "none"

// Of is as in registry.Types.
func (t *types) Of(ctx context.Context, resource change.Resource, before string) (*typed.Type, string, error) {
	document, hash, err := t.document(ctx, resource, before)
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

// document is that of the resource, and the hash that tells it from what it was before, "" where there is none. The
// document is nil where it is as before. Several resources of one are asked for one after the other.
func (t *types) document(ctx context.Context, resource change.Resource, before string) (*openapi.Document, string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hashes == nil || time.Since(t.read) > t.cluster.Look/2 {
		hashes, err := t.client.OpenAPIHashes(ctx)
		if err != nil {
			return nil, "", err
		}
		t.hashes, t.read, t.last, t.known = hashes, time.Now(), nil, "" // a document is large
	}
	hash := t.hashes(resource)
	if hash == "" || hash == before {
		return nil, hash, nil
	}
	if t.known != hash {
		document, err := read(ctx, t.client, resource)
		if err != nil {
			return nil, "", err
		}
		t.last, t.known = document, hash
	}
	return t.last, hash, nil
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
	client *source.Client
	asked  map[string]*openapi.Document // by group and version; nil could not be had
	Silent []string                     // the groups and versions that the server does not tell the schemas of, or too many
}

// NewSchemas asks nothing yet.
func NewSchemas(client *source.Client) *Schemas {
	return &Schemas{client: client, asked: map[string]*openapi.Document{}}
}

// Of is nil where the server does not tell.
func (s *Schemas) Of(ctx context.Context, resource change.Resource) *openapi.Document {
	at := strings.TrimPrefix(resource.Group+"/"+resource.Version, "/")
	if document, asked := s.asked[at]; asked {
		return document
	}
	document, err := read(ctx, s.client, resource)
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
func read(ctx context.Context, client *source.Client, resource change.Resource) (document *openapi.Document, err error) {
	err = client.OpenAPI(ctx, resource, func(from io.Reader) (err error) {
		document, err = openapi.Read(from)
		return err
	})
	if err != nil {
		return nil, err
	}
	return document, nil
}
