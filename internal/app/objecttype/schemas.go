package objecttype

import (
	"context"
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

// Silent are the groups and versions that the server does not tell the schemas of.
func (s *Schemas) Silent() []string { return s.silent }

// Of is nil where the server does not tell.
func (s *Schemas) Of(ctx context.Context, resource change.Resource) *openapi.Document {
	at := strings.TrimPrefix(resource.Group+"/"+resource.Version, "/")
	if document, asked := s.asked[at]; asked {
		return document
	}
	text, err := s.access.OpenAPI(ctx, resource)
	var document *openapi.Document
	if err == nil {
		document, err = openapi.Parse(text)
	}
	if err != nil {
		s.silent = append(s.silent, at)
	}
	s.asked[at] = document
	return document
}
