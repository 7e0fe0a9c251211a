package check

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/destination"
	"github.com/kubecdc/kubecdc/internal/app/requests"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/observe/console"
	"github.com/kubecdc/kubecdc/internal/sink"
)

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
