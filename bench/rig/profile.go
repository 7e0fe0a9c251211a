package rig

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
)

// insideRole is the role of the process that has the line inside.
const insideRole = "inside"

// insideSpec is what is to be profiled.
type insideSpec struct {
	Inside Inside
	Lines  int
	Files  Profiles
}

// Profiles are the files that profiles are written into; "" is none.
type Profiles struct {
	CPU, Allocs string
	Rules       string // YAML that the profiled line has as rules of the Pods; "" is none
}

// Flags declares the flags that name them.
func (p *Profiles) Flags(flags *flag.FlagSet) {
	flags.StringVar(&p.CPU, "cpuprofile", "", "only run the line inside a process and profile its CPU time into this file")
	flags.StringVar(&p.Rules, "rules", "", "with -cpuprofile: rules of the Pods, YAML of the keys beside resource")
	flags.StringVar(&p.Allocs, "memprofile", "", "with -cpuprofile: profile what is allocated into this file")
}

// Profile runs the line inside a child process, in the world, until so many lines are in its file.
func (r *Rig) Profile(ctx context.Context, w replay.World, lines int, files Profiles) error {
	spec := insideSpec{Inside: Inside{Host: r.Address.Host(w), CA: r.Address.CA, Dir: r.Dir, Rules: files.Rules}, Lines: lines, Files: files}
	var usage harness.Usage
	if err := harness.Call(ctx, insideRole, spec, &usage); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "inside: %d lines, %.2f s CPU, %.1f MiB\n", lines, usage.CPU.Seconds(), float64(usage.PeakRSS)/(1<<20))
	return nil
}

// runInside is the insideRole: it runs the line until its lines are in the file, and replies with what the process
// used.
func runInside(ctx context.Context, text json.RawMessage, reply func(any) error) error {
	var spec insideSpec
	if err := json.Unmarshal(text, &spec); err != nil {
		return fmt.Errorf("read the spec: %w", err)
	}
	output, err := Follow(spec.Inside.Output())
	if err != nil {
		return err
	}
	stop, err := harness.StartProfile(spec.Files.CPU)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- spec.Inside.Run(ctx) }()
	for done := false; !done; {
		select {
		case err := <-ended:
			return errors.Join(errors.New("the line ended early"), err)
		case <-time.After(Poll):
		}
		if done, err = output.Has(spec.Lines)(); err != nil {
			return err
		}
	}
	usage, err := harness.UsageOf(os.Getpid())
	if err := errors.Join(err, stop(), harness.WriteProfile("allocs", spec.Files.Allocs)); err != nil {
		return err
	}
	cancel()
	if err := <-ended; err != nil {
		return err
	}
	return reply(usage)
}
