package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/console"
	"github.com/kubecdc/kubecdc/internal/selection"
	"github.com/kubecdc/kubecdc/internal/source"
)

// Run prints what was found of each thing that is checked, as lines or as a document.
func Run(ctx context.Context, to cluster.Access, cfg *config.Config, out *console.Findings) error {
	cluster.NewLogger(io.Discard, cfg.Log)
	r := report{out: out}
	r.ok("configuration")
	c, err := cluster.Find(to, cfg)
	if err == nil {
		checkCluster(ctx, &checkedTask{to, cfg, c}, &r)
	} else {
		r.problem(err)
		c = &cluster.Cluster{Name: cmp.Or(cfg.Cluster, to.Context, "kubernetes")} // sinks want a name
	}
	saved := checkState(ctx, c, cfg, &r)
	if saved.running == nil {
		checkListen(ctx, cfg.Listen, "--listen, or with listen in the configuration", &r)
	}
	checkAudit(ctx, cfg, saved.running, &r)
	checkStateLog(ctx, &checkedTask{to, cfg, c}, &r)
	checkPlaces(cfg, c, &r)
	for i := range cfg.Sinks {
		if err := selection.CheckSinkRules(cfg, &cfg.Sinks[i]); err != nil {
			r.problem(err)
		}
		checkSink(ctx, &checked{&cfg.Sinks[i], saved}, c, &r)
	}
	return errors.Join(r.err(), out.End())
}

func checkCluster(ctx context.Context, of *checkedTask, r *report) {
	c, cfg := of.cluster, of.cfg
	if err := c.Identify(ctx); err != nil {
		r.problem(err)
		return
	}
	r.ok("cluster " + c.Name + " at " + c.Rest.Host + ", uid " + c.UID)
	catalog, err := c.Resolve(ctx, c.Rest, cfg.Resources)
	if err != nil {
		r.problem(err)
	}
	if catalog != nil && catalog.Incomplete() != nil {
		r.note(fmt.Sprintf("API discovery is incomplete, so a wildcard may miss resources: %v", catalog.Incomplete()))
	}
	access, err := source.NewAccess(c.Rest)
	if err != nil {
		r.problem(err)
		return
	}
	for _, s := range c.Streams() {
		checkStream(ctx, access, &s, r)
	}
	for _, missing := range access.Missing(ctx) {
		r.note(missing)
	}
	checkPaths(ctx, access, c, cfg, r)
	checkLease(ctx, access, of, r)
	noteLeftOut(c.Chosen.Load(), cfg, r)
}

// noteLeftOut says what wildcards do not stand for, and what waits. Another name that stands for nothing is a problem
// already.
func noteLeftOut(chosen *selection.Choice, cfg *config.Config, r *report) {
	if chosen == nil {
		return
	}
	for _, left := range chosen.Left {
		named := slices.ContainsFunc(cfg.Resources, func(c config.Resource) bool { return c.Name == left.Name })
		switch {
		case left.Waits:
			r.note("resource " + left.Name + " waits: " + left.Reason)
		case !named || source.IsWildcard(left.Name):
			r.note("resource " + left.Name + " is left out: " + left.Reason)
		}
	}
}

func checkStream(ctx context.Context, access *source.Access, s *selection.Selected, r *report) {
	err := access.Check(ctx, s.Stream, s.Selection)
	var forbidden *source.ForbiddenError
	switch {
	case errors.As(err, &forbidden) && source.IsWildcard(s.Names[0]):
		r.note("resource " + s.Stream.String() + " waits: " + err.Error())
		return
	case err != nil:
		r.problem(err)
		return
	}
	origin := ""
	if source.IsWildcard(s.Names[0]) {
		origin = ", of " + s.Names[0]
	}
	r.ok("resource " + s.Stream.String() + origin)
	if s.Stream.Namespace != "" && access.NamespaceMissing(ctx, s.Stream.Namespace) {
		r.note("namespace " + s.Stream.Namespace + " does not exist: nothing will come from " + s.Stream.String() + " until somebody creates it")
	}
}
