package objecttype

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/openapi"
	"github.com/kubecdc/kubecdc/internal/source"
)

// Schemas are those of the server, each document asked for once, and only where there is a path to look up.
type Schemas struct {
	access *source.Access
	asked  map[string]*openapi.Document // by group and version; nil could not be had
	silent []string                     // those
}

// NewSchemas asks nothing yet.
func NewSchemas(access *source.Access) *Schemas {
	return &Schemas{access: access, asked: map[string]*openapi.Document{}}
}

// Silent are the groups and versions that the server does not tell the schemas of, or too many.
func (s *Schemas) Silent() []string { return s.silent }

// Of is nil where the server does not tell.
func (s *Schemas) Of(ctx context.Context, resource change.Resource) *openapi.Document {
	at := strings.TrimPrefix(resource.Group+"/"+resource.Version, "/")
	if document, asked := s.asked[at]; asked {
		return document
	}
	document, err := read(ctx, s.access, resource)
	switch {
	case err != nil:
		s.silent = append(s.silent, at)
	case document.LeftOut > 0:
		s.silent = append(s.silent, fmt.Sprintf("%d kinds of %s", document.LeftOut, at))
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
