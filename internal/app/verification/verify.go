package verification

import (
	"context"
	"fmt"
	"io"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/console"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// Run compares one sink after the other. It returns a *differsError where it has found differences.
func Run(ctx context.Context, o Options, out *console.Reports) error {
	cfg := o.Config
	cluster.NewLogger(io.Discard, cfg.Log)
	c, err := cluster.Find(o.Access, cfg)
	if err != nil {
		return err
	}
	if err := c.Identify(ctx); err != nil {
		return err
	}
	if _, err := c.Resolve(ctx, c.Rest, cfg.Resources); err != nil {
		return err
	}
	for _, left := range c.Chosen.Load().Waiting() {
		out.Note("resource %s is left out: %s", left.Name, left.Reason)
	}
	streams, err := c.Called(o.Resources)
	if err != nil {
		return err
	}
	var errs []error
	differences := 0
	for i := range cfg.Sinks {
		s := &cfg.Sinks[i]
		if s.Kind() == config.KindStdout && len(cfg.Sinks) > 1 && o.AllSinks {
			out.Note("sink %s is standard output, which cannot be read back: it is left out", s.Name)
			continue
		}
		found, err := (&verification{Options: o, sink: s, uid: c.UID}).compareSink(ctx, c, streams)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if err := out.Show(found); err != nil {
			return err
		}
		if found.Undecided {
			errs = append(errs, fmt.Errorf("sink %s: %s", s.Name, found.Note))
		}
		differences += found.Differences()
	}
	switch {
	case len(errs) > 0:
		return usage.Several("verify", errs...)
	case differences > 0:
		return &DiffersError{differences}
	}
	return nil
}

// DiffersError is what was found, and no failure of ours.
type DiffersError struct{ n int }

func (e *DiffersError) Error() string {
	if e.n == 1 {
		return "verify found 1 difference"
	}
	return fmt.Sprintf("verify found %d differences", e.n)
}
