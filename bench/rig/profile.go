package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
)

// InsideRole is the role of the process that has the line inside.
const InsideRole = "inside"

// insideSpec is what is to be profiled.
type insideSpec struct {
	Inside Inside
	Lines  int
	Files  Profiles
}

// Profiles are the files that profiles are written into; "" is none.
type Profiles struct{ CPU, Allocs string }

// Profile runs the line inside a child process, in the world, until so many lines are in its file.
func Profile(ctx context.Context, w replay.World, lines int, files Profiles) (err error) {
	server, address, err := StartServer(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	dir, err := os.MkdirTemp("", "kubecdc-bench-")
	if err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	spec := insideSpec{Inside: Inside{Host: address.Host(w), CA: address.CA, Dir: dir}, Lines: lines, Files: files}
	var usage harness.Usage
	if err := harness.Call(ctx, InsideRole, spec, &usage); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "inside: %d lines, %.2f s CPU, %.1f MiB\n", lines, usage.CPU.Seconds(), float64(usage.PeakRSS)/(1<<20))
	return nil
}

// RunInside is the InsideRole: it runs the line until its lines are in the file, and replies with what the process
// used.
func RunInside(ctx context.Context, text json.RawMessage, reply func(any) error) error {
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
