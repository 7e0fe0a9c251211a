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

// rules are paths by key, the streams whose objects they are of, and who has them, as it is told.
type rules struct {
	who     string
	paths   map[string][]string
	streams []selection.Selected
	open    bool // more streams may come, some day
}

// allRules are those of the resources and of the sinks.
func allRules(c *cluster, cfg *config.Config) []rules {
	var all []rules
	streams := c.Streams()
	for i := range cfg.Resources {
		entry := &cfg.Resources[i]
		all = append(all, rules{
			who:     fmt.Sprintf("resource %q", entry.Name),
			paths:   map[string][]string{"drop": entry.Drop, "only": entry.Only, "redact": entry.Redact.Paths, "ignore": selection.IgnoredPaths(entry)},
			streams: chosen(streams, func(s *selection.Selected) bool { return slices.Contains(s.Entries(), entry) }),
			open:    source.IsWildcard(entry.Name),
		})
	}
	wildcards := slices.ContainsFunc(cfg.Resources, func(r config.Resource) bool { return source.IsWildcard(r.Name) })
	for i := range cfg.Sinks {
		s := &cfg.Sinks[i]
		wants := c.wantedBy(s)
		all = append(all, rules{
			who:     fmt.Sprintf("sink %q", s.Name),
			paths:   map[string][]string{"drop": s.Drop, "only": s.Only, "redact": s.Redact},
			streams: chosen(streams, func(s *selection.Selected) bool { return wants == nil || wants(&s.Stream) }),
			open:    wildcards,
		})
	}
	return all
}

func chosen(streams []selection.Selected, of func(*selection.Selected) bool) (some []selection.Selected) {
	for i := range streams {
		if of(&streams[i]) {
			some = append(some, streams[i])
		}
	}
	return some
}

// checkPaths finds paths that no object can have of any resource that they are for. A wildcard may stand for more, some
// day.
func checkPaths(ctx context.Context, access *source.Access, c *cluster, cfg *config.Config, r *report) {
	known := &schemas{access: access, asked: map[string]*openapi.Document{}}
	for _, of := range allRules(c, cfg) {
		for _, key := range []string{"drop", "only", "redact", "ignore"} {
			for _, path := range of.paths[key] {
				if known.lacks(ctx, of.streams, path) {
					reportPath(r, &of, key, path)
				}
			}
		}
	}
	if len(known.silent) > 0 {
		r.note("paths of " + strings.Join(known.silent, ", ") + " are not looked up: the API server does not tell the schemas")
	}
}

func reportPath(r *report, of *rules, key, path string) {
	said := fmt.Sprintf("%s: %s path %q: the API server's schemas have no such field", of.who, key, path)
	if of.open {
		r.note(said + ": correct it, unless it is for resources that are installed later")
		return
	}
	r.problem(usage.Errorf("%s: correct it, or leave it out", said))
}

// lacks says whether the path is known to lead nowhere in all objects of the streams.
func (s *schemas) lacks(ctx context.Context, streams []selection.Selected, path string) bool {
	steps, err := transform.Steps(path)
	if err != nil {
		return false // which is a problem already
	}
	for i := range streams {
		resource := streams[i].Stream.Resource
		document := s.of(ctx, resource)
		if document == nil {
			return false
		}
		if has, known := document.Has(resource.Group, resource.Version, resource.Kind, steps); has || !known {
			return false
		}
	}
	return len(streams) > 0
}
