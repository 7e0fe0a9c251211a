package schemas

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/kubecdc/kubecdc/internal/app/destination"
	"github.com/kubecdc/kubecdc/internal/typed"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// Diff writes how the schema of the one resource that is registered for the sink differs from what the API server
// describes now. It changes nothing. The error has the registry's words where it would refuse a new version.
func Diff(ctx context.Context, o Options, out io.Writer) error {
	w, name, err := o.one(ctx)
	if err != nil {
		return err
	}
	planned, err := destination.NewPlan(o.Sink, w.cluster)
	if err != nil {
		return err
	}
	if planned == nil {
		return usage.Errorf("sink %s has no kafka.registry: schema diff compares with what is registered", o.Sink.Name)
	}
	plan, err := planned(ctx, &w.resources[name][0].Stream, "")
	if plan == nil {
		return err
	}
	text := fmt.Sprintf("subject %s, version %d\n", plan.Subject, plan.Version)
	if plan.Version == 0 {
		text = fmt.Sprintf("subject %s has no version: a run registers the first one\n", plan.Subject)
	}
	for _, d := range plan.Differences {
		text += line(d) + "\n"
	}
	if plan.Version > 0 && !plan.Adds {
		text += "a run registers nothing\n"
	} else if plan.Version > 0 && err == nil {
		text += "a run registers a new version, which is compatible\n"
	}
	if _, told := io.WriteString(out, text); told != nil {
		return told
	}
	return err
}

// line is one difference.
func line(d typed.Difference) string {
	path := strings.TrimPrefix(d.Path, ".")
	switch {
	case d.Older == "":
		return fmt.Sprintf("+ %s: %s", path, d.Newer)
	case d.Newer == "":
		return fmt.Sprintf("- %s: %s (the column stays, and is null)", path, d.Older)
	}
	return fmt.Sprintf("~ %s: %s, now %s (the column stays; other values are in kubecdc_rest)", path, d.Older, d.Newer)
}
