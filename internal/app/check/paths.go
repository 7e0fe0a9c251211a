package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/objecttype"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/selection"
	"github.com/kubecdc/kubecdc/internal/source"
	"github.com/kubecdc/kubecdc/internal/transform"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// rules are paths by key, the streams whose objects they are of, and who has them, as it is told.
type rules struct {
	who     string
	paths   map[string][]string
	streams []selection.Selected
	open    bool // more streams may come, some day
}

// allRules are those of the resources and of the sinks.
func allRules(c *cluster.Cluster, cfg *config.Config) []rules {
	var all []rules
	for i := range cfg.Resources {
		entry := &cfg.Resources[i]
		all = append(all, rules{
			who:     fmt.Sprintf("resource %q", entry.Name),
			paths:   map[string][]string{"drop": entry.Drop, "only": entry.Only, "redact": entry.Redact.Paths, "ignore": selection.IgnoredPaths(entry)},
			streams: c.StreamsThat(func(s *selection.Selected) bool { return slices.Contains(s.Entries(), entry) }),
			open:    source.IsWildcard(entry.Name),
		})
	}
	wildcards := slices.ContainsFunc(cfg.Resources, func(r config.Resource) bool { return source.IsWildcard(r.Name) })
	for i := range cfg.Sinks {
		s := &cfg.Sinks[i]
		wants := c.WantedBy(s)
		all = append(all, rules{
			who:     fmt.Sprintf("sink %q", s.Name),
			paths:   map[string][]string{"drop": s.Drop, "only": s.Only, "redact": s.Redact},
			streams: c.StreamsThat(func(s *selection.Selected) bool { return wants == nil || wants(&s.Stream) }),
			open:    wildcards,
		})
	}
	return all
}

// checkPaths finds paths that no object can have of any resource that they are for. A wildcard may stand for more, some
// day.
func checkPaths(ctx context.Context, access *source.Access, c *cluster.Cluster, cfg *config.Config, r *report) {
	known := objecttype.NewSchemas(access)
	for _, of := range allRules(c, cfg) {
		for _, key := range []string{"drop", "only", "redact", "ignore"} {
			for _, path := range of.paths[key] {
				if lacks(ctx, known, of.streams, path) {
					reportPath(r, &of, key, path)
				}
			}
		}
	}
	if len(known.Silent()) > 0 {
		r.note("paths of " + strings.Join(known.Silent(), ", ") + " are not looked up: the API server does not tell the schemas, or more than are read")
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
func lacks(ctx context.Context, known *objecttype.Schemas, streams []selection.Selected, path string) bool {
	steps, err := transform.Steps(path)
	if err != nil {
		return false // which is a problem already
	}
	for i := range streams {
		resource := streams[i].Stream.Resource
		document := known.Of(ctx, resource)
		if document == nil {
			return false
		}
		if has, certain := document.Has(resource.Group, resource.Version, resource.Kind, steps); has || !certain {
			return false
		}
	}
	return len(streams) > 0
}
