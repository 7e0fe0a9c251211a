package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/openapi"
	"github.com/kubecdc/kubecdc/internal/selection"
	"github.com/kubecdc/kubecdc/internal/source"
	"github.com/kubecdc/kubecdc/internal/transform"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// schemas are those of the server, each document asked for once, and only where there is a path to look up.
type schemas struct {
	access *source.Access
	asked  map[string]*openapi.Document // by group and version; nil could not be had
	silent []string                     // those
}

// of is nil where the server does not tell.
func (s *schemas) of(ctx context.Context, resource change.Resource) *openapi.Document {
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

// rulePaths are the paths of a configured resource, by key.
func rulePaths(r *config.Resource) map[string][]string {
	return map[string][]string{"drop": r.Drop, "only": r.Only, "redact": r.Redact.Paths}
}

// checkPaths finds paths that no object can have of any resource that their entry stands for. A wildcard may stand for
// more, some day.
func checkPaths(ctx context.Context, access *source.Access, c *cluster, r *report) {
	known := &schemas{access: access, asked: map[string]*openapi.Document{}}
	var seen []*config.Resource
	streams := c.Streams()
	for i := range streams {
		entry := streams[i].Configured
		if entry == nil || slices.Contains(seen, entry) {
			continue
		}
		seen = append(seen, entry)
		for _, key := range []string{"drop", "only", "redact"} {
			for _, path := range rulePaths(entry)[key] {
				if known.lacks(ctx, streams, entry, path) {
					reportPath(r, entry, key, path)
				}
			}
		}
	}
	if len(known.silent) > 0 {
		r.note("paths of " + strings.Join(known.silent, ", ") + " are not looked up: the API server does not tell the schemas")
	}
}

func reportPath(r *report, entry *config.Resource, key, path string) {
	said := fmt.Sprintf("resource %q: %s path %q: the API server's schemas have no such field", entry.Name, key, path)
	if source.IsWildcard(entry.Name) {
		r.note(said + ": correct it, unless it is for resources that are installed later")
		return
	}
	r.problem(usage.Errorf("%s: correct it, or leave it out", said))
}

// lacks says whether the path is known to lead nowhere in all of the entry's resources.
func (s *schemas) lacks(ctx context.Context, streams []selection.Selected, entry *config.Resource, path string) bool {
	steps, err := transform.Steps(path)
	if err != nil {
		return false // which is a problem already
	}
	for i := range streams {
		resource := streams[i].Stream.Resource
		if streams[i].Configured != entry {
			continue
		}
		document := s.of(ctx, resource)
		if document == nil {
			return false
		}
		if has, known := document.Has(resource.Group, resource.Version, resource.Kind, steps); has || !known {
			return false
		}
	}
	return true
}
