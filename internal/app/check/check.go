package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/destination"
	"github.com/kubecdc/kubecdc/internal/app/requests"
	"github.com/kubecdc/kubecdc/internal/app/selection"
	"github.com/kubecdc/kubecdc/internal/app/task"
	"github.com/kubecdc/kubecdc/internal/audit/webhook"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/ha/statelog"
	"github.com/kubecdc/kubecdc/internal/observe/console"
	"github.com/kubecdc/kubecdc/internal/shape/transform"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/source"
)

// Run prints what was found of each thing that is checked, as lines or as a document. Of several tasks it checks one
// after the other.
func Run(ctx context.Context, to cluster.Access, cfg *config.Config, out *console.Findings) error {
	cluster.NewLogger(io.Discard, cfg.Log)
	out.OK("configuration")
	if cfg.IsSplit() {
		checkAll(ctx, to, cfg, out)
	} else {
		checkOne(ctx, to, cfg, out)
	}
	return out.End()
}

// checkAll checks one task after the other.
func checkAll(ctx context.Context, to cluster.Access, cfg *config.Config, r *console.Findings) {
	uids, runs := map[string]string{}, false
	if home := to; len(cfg.Clusters) > 0 && cfg.HA != nil {
		to.Home = &home
	}
	for _, one := range cfg.AllTasks() {
		of := one.Cluster
		if r.Of = "task " + one.Name() + ": "; of.Name != "" {
			to = to.Of(of)
		}
		c, running := checkOne(ctx, to, cfg.Of(one), r)
		if other, found := uids[c.UID]; c.UID != "" && found && other != of.Name {
			r.Problem(usage.Errorf("it is cluster %s, too (uid %s): leave one of them out, or correct its kubeconfig or context", other, c.UID))
		}
		uids[c.UID], runs = of.Name, runs || running
	}
	if r.Of = ""; !runs {
		checkListen(ctx, cfg.Listen, wayOfListen, r)
	}
}

const wayOfListen = "--listen, or with listen in the configuration"

func checkOne(ctx context.Context, to cluster.Access, cfg *config.Config, r *console.Findings) (c *cluster.Cluster, running bool) {
	c, err := cluster.Find(ctx, to, cfg)
	if r.Problem(err) {
		c = &cluster.Cluster{Name: cmp.Or(cfg.Cluster, to.Context, "kubernetes")} // sinks want a name
	}
	of := &checkedTask{to, cfg, c}
	if err == nil {
		checkCluster(ctx, of, r)
	}
	saved := checkState(ctx, c, cfg, r)
	if saved.running == nil && r.Of == "" {
		checkListen(ctx, cfg.Listen, wayOfListen, r)
	}
	checkAudit(ctx, cfg, saved.running, r)
	logged := checkStateLog(ctx, of, r)
	if saved.State == nil && logged != nil { // the next start takes that over
		read, err := task.ReadFound(ctx, logged)
		if err != nil {
			r.Note("log of the state: " + err.Error())
		} else {
			saved.State = read.State
		}
	}
	checkPlaces(cfg, c, r)
	for i := range cfg.Sinks {
		r.Problem(selection.CheckSinkRules(cfg, &cfg.Sinks[i]))
		checkSink(ctx, &cfg.Sinks[i], saved, c, r)
	}
	if c.UID != "" { // else nobody knows what is served
		for _, line := range Plan(saved.State, c, cfg) {
			r.Note(line)
		}
	}
	return c, saved.running != nil
}

func checkCluster(ctx context.Context, of *checkedTask, r *console.Findings) {
	c, cfg := of.cluster, of.cfg
	if r.Problem(c.Identify(ctx)) {
		return
	}
	r.OK("cluster " + c.Name + " at " + c.Rest.Host + ", uid " + c.UID)
	catalog, err := c.Resolve(ctx, c.Rest, cfg.Resources)
	r.Problem(err)
	if catalog != nil && catalog.Incomplete() != nil {
		r.Note(fmt.Sprintf("API discovery is incomplete, so a wildcard may miss resources: %v", catalog.Incomplete()))
	}
	client, err := source.NewClient(c.Rest, 0)
	if r.Problem(err) {
		return
	}
	for _, s := range c.Streams() {
		checkStream(ctx, client, &s, r)
	}
	definitions := change.Resource{Group: "apiextensions.k8s.io", Version: "v1", Name: "customresourcedefinitions"}
	for _, right := range []struct { // that no stream needs
		stream change.Stream
		lack   string
	}{
		{change.Stream{Resource: definitions}, "a stream whose definition is deleted waits for it"},
		{leases("kube-system"), "a gap begins some seconds later, since nobody knows how many API servers there are"},
	} {
		if verbs, err := client.Forbidden(ctx, right.stream, "list"); err == nil && len(verbs) > 0 {
			r.Note(fmt.Sprintf("the API server forbids to list %s: %s", right.stream, right.lack))
		}
	}
	if cfg.AsksNamespaces() {
		namespaces := change.Stream{Resource: change.Resource{Version: "v1", Name: "namespaces"}}
		missing, err := client.Forbidden(ctx, namespaces, "get", "list", "watch")
		if err == nil && len(missing) > 0 {
			err = fmt.Errorf("labels of namespaces are asked for, and the API server forbids to %s namespaces: "+
				"bind a role with these verbs to the exporter's user, or streams that need them wait", strings.Join(missing, ", "))
		}
		if !r.Problem(err) {
			r.OK("labels of namespaces")
		}
	}
	checkPaths(ctx, client, c, cfg, r)
	checkLease(ctx, of, r)
	noteLeftOut(c.Chosen.Load(), cfg, r)
}

// noteLeftOut says what wildcards do not stand for, and what waits. Another name that stands for nothing is a problem
// already.
func noteLeftOut(chosen *selection.Choice, cfg *config.Config, r *console.Findings) {
	if chosen == nil {
		return
	}
	for _, left := range chosen.Left {
		named := slices.ContainsFunc(cfg.Resources, func(c config.Resource) bool { return c.Name == left.Name })
		switch {
		case left.Waits:
			r.Note("resource " + left.Name + " waits: " + left.Reason)
		case !named || source.IsWildcard(left.Name):
			r.Note("resource " + left.Name + " is left out: " + left.Reason)
		}
	}
}

func checkStream(ctx context.Context, client *source.Client, s *selection.Selected, r *console.Findings) {
	err := client.Check(ctx, s.Stream, s.Selection)
	if errors.As(err, new(*source.ForbiddenError)) && source.IsWildcard(s.Names[0]) {
		r.Note("resource " + s.Stream.String() + " waits: " + err.Error())
		return
	}
	if r.Problem(err) {
		return
	}
	origin := ""
	if source.IsWildcard(s.Names[0]) {
		origin = ", of " + s.Names[0]
	}
	r.OK("resource " + s.Stream.String() + origin)
	if s.Stream.Namespace != "" && client.NamespaceMissing(ctx, s.Stream.Namespace) {
		r.Note("namespace " + s.Stream.Namespace + " does not exist: nothing will come from " + s.Stream.String() + " until somebody creates it")
	}
}

// checkAudit looks at the files of the audit webhook, and whether its address is free.
func checkAudit(ctx context.Context, cfg *config.Config, running *control.Running, r *console.Findings) {
	if cfg.Audit == nil {
		return
	}
	files := webhook.Certificates{Cert: cfg.Audit.TLS.Cert, Key: cfg.Audit.TLS.Key, ClientCA: cfg.Audit.ClientCA}
	if err := files.Load(); err != nil {
		r.Problem(usage.Wrap(err))
		return
	}
	r.OK("files of audit")
	if running == nil {
		checkListen(ctx, cfg.Audit.Listen, "audit.listen in the configuration", r)
	}
}

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
			paths:   map[string][]string{"drop": entry.Drop, "only": entry.Only, "redact": entry.Redact.Paths, "ignore": selection.Ignored(change.Resource{}, entry)},
			streams: c.StreamsThat(func(s *selection.Selected) bool { return slices.Contains(s.Entries(), entry) }),
			open:    source.IsWildcard(entry.Name),
		})
	}
	wildcards := slices.ContainsFunc(cfg.Resources, func(r config.Resource) bool { return source.IsWildcard(r.Name) })
	for i := range cfg.Sinks {
		s := &cfg.Sinks[i]
		all = append(all, rules{
			who:     fmt.Sprintf("sink %q", s.Name),
			paths:   map[string][]string{"drop": s.Drop, "only": s.Only, "redact": s.Redact},
			streams: c.Taken(s),
			open:    wildcards,
		})
	}
	return all
}

// checkPaths finds paths that no object can have of any resource that they are for. A wildcard may stand for more, some
// day.
func checkPaths(ctx context.Context, client *source.Client, c *cluster.Cluster, cfg *config.Config, r *console.Findings) {
	known := destination.NewSchemas(client)
	for _, of := range allRules(c, cfg) {
		for _, key := range []string{"drop", "only", "redact", "ignore"} {
			for _, path := range of.paths[key] {
				said := fmt.Sprintf("%s: %s path %q: the API server's schemas have no such field", of.who, key, path)
				switch {
				case !lacks(ctx, known, of.streams, path):
				case of.open:
					r.Note(said + ": correct it, unless it is for resources that are installed later")
				default:
					r.Problem(usage.Errorf("%s: correct it, or leave it out", said))
				}
			}
		}
	}
	if len(known.Silent) > 0 {
		r.Note("paths of " + strings.Join(known.Silent, ", ") + " are not looked up: the API server does not tell the schemas, or more than are read")
	}
}

// lacks says whether the path is known to lead nowhere in all objects of the streams.
func lacks(ctx context.Context, known *destination.Schemas, streams []selection.Selected, path string) bool {
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

// checkPlaces finds sinks that would write into each other's logs: each would take the other for a second writer,
// or tell twice.
func checkPlaces(cfg *config.Config, c *cluster.Cluster, r *console.Findings) {
	places := make([][]destination.Place, len(cfg.Sinks))
	for i := range cfg.Sinks {
		if d, err := destination.Of(&cfg.Sinks[i], c); err == nil { // what is wrong with it is told by those who build it
			places[i] = d.Places
		}
		for j := range i {
			for _, p := range places[i] {
				checkPlace(&p, places[j], cfg.Sinks[j].Name+" and "+cfg.Sinks[i].Name, r)
			}
		}
	}
}

// checkPlace compares a place of one sink with those of another one.
func checkPlace(p *destination.Place, others []destination.Place, sinks string, r *console.Findings) {
	if slices.ContainsFunc(others, func(theirs destination.Place) bool { return p.Meets(&theirs) }) {
		r.Problem(usage.Errorf("sinks %s write to the same %s: give each its own with the key %s, or leave one out", sinks, p.What, p.Key))
	}
}

// checkStateLog looks at the log of the state, and changes nothing. It returns what the log has, nil where that is
// nothing.
func checkStateLog(ctx context.Context, of *checkedTask, r *console.Findings) *statelog.Found {
	c, cfg := of.cluster, of.cfg
	if cfg.State.Log == nil {
		return nil
	}
	place, err := task.LogPlace(cfg, c, func(string, error) {})
	if r.Problem(err) {
		return nil
	}
	if target, ok := place.Sink.(sink.Checker); ok {
		if _, err := target.Check(ctx); r.ProblemOf("log of the state, "+place.Name, err) {
			return nil
		}
	}
	found, err := statelog.Look(ctx, place, of.bid(ctx))
	switch {
	case errors.Is(err, statelog.ErrNothing):
		r.OK("log of the state, " + place.Name + ", which the first start fills")
	case err != nil && !task.IsForGood(err):
		r.Note(err.Error())
	case !r.Problem(err):
		r.OK(fmt.Sprintf("log of the state, %s, saved %s", place.Name, found.Saved.Format(time.RFC3339)))
		return found
	}
	return nil
}

// bid is the wish to write the log. Whose Lease it is says the API server.
func (of *checkedTask) bid(ctx context.Context) statelog.Bid {
	bid := statelog.Bid{Of: statelog.Identity{Cluster: of.cluster.Name, UID: of.cluster.UID, Instance: of.cluster.Instance}}
	if of.cfg.HA == nil || of.cluster.UID == "" {
		return bid
	}
	if lease, err := task.Lease(of.to, of.cfg, of.cluster.Name); err == nil { // what is wrong with it was said
		bid.Judge = task.JudgeOf(ctx, of.cluster, lease.String())
	}
	return bid
}

// resumer is a sink that can say what stands against going on at a saved mark, "" is none. It changes nothing.
type resumer interface {
	CheckMark(ctx context.Context, saved sink.Mark) (note string, err error)
}

// checkSink looks at a sink, with what is saved, and what the exporter does that may have it open.
func checkSink(ctx context.Context, s *config.Sink, had saved, c *cluster.Cluster, r *console.Findings) {
	built, err := destination.Build(s, c, destination.Outlet{Stdout: io.Discard, Told: destination.Nop{}})
	d, ofErr := destination.Of(s, c)
	if r.Problem(cmp.Or(err, ofErr)) {
		return
	}
	note, resumed, mark := "", "", sink.Mark("")
	if had.State != nil {
		mark = sink.Mark(had.Marks[s.Name])
	}
	if target, ok := built.Target.(sink.Checker); ok {
		note, err = target.Check(ctx)
	}
	if target, ok := built.Target.(resumer); ok && err == nil {
		resumed, err = target.CheckMark(ctx, mark)
	}
	if d.InUse != nil && d.InUse(err) && had.holds(s.Name, d.Address) {
		note, err = "the running exporter has it open", nil
	}
	if r.ProblemOf("sink "+s.Name, err) {
		return
	}
	r.OK("sink " + s.Name)
	if d.Hearer != nil { // others can ask through the sink's broker, where they may
		h, err := d.Hearer(requests.Shut())
		if err == nil {
			err = h.Check(ctx)
		}
		r.ProblemOf("sink "+s.Name, err)
	}
	checkSchemas(ctx, s, mark, c, r)
	for _, text := range []string{note, resumed} {
		if text != "" {
			r.Note("sink " + s.Name + ": " + text)
		}
	}
}

// mostFailures bounds how often one registry is asked in vain.
const mostFailures = 5

// checkSchemas looks whether the sink's registry takes the schemas of all resources that the sink takes, and registers
// none.
func checkSchemas(ctx context.Context, s *config.Sink, at sink.Mark, c *cluster.Cluster, r *console.Findings) {
	if c.Rest == nil {
		return // that there is no cluster is told
	}
	planned, err := destination.NewPlan(s, c)
	if r.ProblemOf("sink "+s.Name, err) || planned == nil {
		return
	}
	asked, adds, failures := map[string]bool{}, 0, 0
	for _, one := range c.Taken(s) {
		resource := one.Stream.Resource
		if asked[resource.String()] || failures == mostFailures {
			continue
		}
		asked[resource.String()] = true
		plan, err := planned(ctx, &one.Stream, at)
		if r.ProblemOf("sink "+s.Name+": resource "+resource.String(), err) {
			failures++
		} else if plan.Value.IsNew() {
			adds++
		}
	}
	if failures == 0 && len(asked) > 0 {
		r.OK(fmt.Sprintf("sink %s: schema registry, %d resources, %d new versions", s.Name, len(asked), adds))
	}
}
