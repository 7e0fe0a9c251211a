package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
	"github.com/kubecdc/kubecdc/bench/rig"
)

// insideSpec is what is to be profiled.
type insideSpec struct {
	Inside      rig.Inside
	Objects     int
	CPU, Allocs string // files
}

// profile takes one snapshot with the line inside a child process.
func profile(ctx context.Context, o options) (err error) {
	server, address, err := rig.StartServer(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	dir, err := os.MkdirTemp("", "kubecdc-bench-")
	if err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w := replay.World{Run: "inside", Objects: o.objects, ObjectBytes: objectBytes}
	spec := insideSpec{Inside: rig.Inside{Host: address.Host(w), CA: address.CA, Dir: dir}, Objects: o.objects, CPU: o.profile, Allocs: o.memory}
	var usage harness.Usage
	if err := harness.Call(ctx, "inside", spec, &usage); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "inside %d objects, %.2f s CPU, %.1f MiB\n", o.objects, usage.CPU.Seconds(), mib(usage.PeakRSS))
	return nil
}

// insideRole runs the line until the snapshot is in the file, and replies with what the process used.
func insideRole(ctx context.Context, text json.RawMessage, reply func(any) error) error {
	var spec insideSpec
	if err := json.Unmarshal(text, &spec); err != nil {
		return fmt.Errorf("read the spec: %w", err)
	}
	output, err := rig.Follow(spec.Inside.Output())
	if err != nil {
		return err
	}
	stop, err := harness.StartProfile(spec.CPU)
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
		case <-time.After(rig.Poll):
		}
		if done, err = output.Has(spec.Objects + 2)(); err != nil {
			return err
		}
	}
	usage, err := harness.UsageOf(os.Getpid())
	if err := errors.Join(err, stop(), harness.WriteProfile("allocs", spec.Allocs)); err != nil {
		return err
	}
	cancel()
	if err := <-ended; err != nil {
		return err
	}
	return reply(usage)
}
