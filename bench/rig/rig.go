// Package rig is what a benchmark of the whole exporter stands on: its binary, as it is released, a replay server in a
// process of its own, and a directory for what the exporter writes.
package rig

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
	"github.com/kubecdc/kubecdc/test/child"
)

// Rig is the binary, the server and the directory.
type Rig struct {
	Dir     string
	Address replay.Address
	Desk    *replay.Desk
	binary  string
	server  *child.Process
}

// serveRole is the role of the replay server's process.
const serveRole = "serve"

// Main is harness.Main for a benchmark that stands on a rig.
func Main(b harness.Benchmark, run func(context.Context, *Rig) ([]harness.Figure, error)) {
	roles := map[string]harness.Role{serveRole: func(ctx context.Context, _ string, reply func(any) error) error {
		return replay.Serve(ctx, func(address replay.Address) error { return reply(address) })
	}}
	maps.Copy(roles, b.Roles)
	b.Roles = roles
	b.Run = func(ctx context.Context) (figures []harness.Figure, err error) {
		r := &Rig{}
		if r.Dir, err = os.MkdirTemp("", "kubecdc-bench-"); err != nil {
			return nil, fmt.Errorf("make a directory: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(r.Dir)) }()
		if r.binary, err = harness.Build(ctx); err != nil {
			return nil, err
		}
		if r.server, err = harness.Start(ctx, serveRole, "", &r.Address); err != nil {
			return nil, err
		}
		defer r.server.Kill()
		r.Desk = replay.NewDesk(r.Address)
		return run(ctx, r)
	}
	harness.Main(b)
}

// Line is an exporter's directory, with its state; it can be started more than once.
type Line struct {
	*Rig
	Dir    string
	Config string // YAML: its resources and sinks
}

// NewLine returns a line with an empty state.
func (r *Rig) NewLine(name, config string) (*Line, error) {
	l := &Line{Rig: r, Dir: filepath.Join(r.Dir, name), Config: config}
	if err := os.Mkdir(l.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	return l, nil
}

// StateDir is the directory of its state.
func (l *Line) StateDir() string { return filepath.Join(l.Dir, "state") }

// Start starts the exporter in a world, or in those of several clusters.
func (l *Line) Start(worlds ...replay.World) (*harness.Exporter, error) {
	config, path := l.Config, filepath.Join(l.Dir, "config.yaml")
	args := []string{"--config", path}
	if len(worlds) > 1 {
		config = "\n" + config
	}
	for _, w := range worlds {
		kubeconfig := filepath.Join(l.Dir, fmt.Sprint("kubeconfig-", w.Cluster))
		text := fmt.Sprintf(kubeconfigText, l.Address.Host(w), base64.StdEncoding.EncodeToString(l.Address.CA))
		if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
			return nil, fmt.Errorf("write the kubeconfig: %w", err)
		}
		if len(worlds) == 1 {
			args = append(args, "--kubeconfig", kubeconfig)
		} else {
			config = fmt.Sprintf("\n- {name: c%d, kubeconfig: %s}%s", w.Cluster, kubeconfig, config)
		}
	}
	if len(worlds) > 1 {
		config = "clusters:" + config
	}
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return nil, fmt.Errorf("write the configuration: %w", err)
	}
	return harness.StartExporter(l.binary, l.StateDir(), args...)
}

const kubeconfigText = `apiVersion: v1
kind: Config
current-context: bench
contexts: [{name: bench, context: {cluster: bench, user: bench}}]
clusters: [{name: bench, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: bench, user: {}}]
`

// AwaitWatches waits until the exporter has so many watches open in the world.
func (r *Rig) AwaitWatches(ctx context.Context, e *harness.Exporter, w replay.World, want int) error {
	return e.Await(ctx, 20*time.Millisecond, func() (bool, error) {
		watches, err := r.Desk.Watches(ctx, w)
		return watches >= want, err
	})
}

// Flow measures what the events of a world of Pods cost an exporter of the configuration: it starts one with an empty
// state, waits until it watches, lets the events go, and measures until its end, when all are in every sink and saved.
func (r *Rig) Flow(ctx context.Context, w replay.World, config string) (m harness.Measured, err error) {
	line, err := r.NewLine(w.Run, config)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(line.Dir)) }()
	w.Held = true
	exporter, err := line.Start(w)
	if err != nil {
		return m, err
	}
	defer exporter.Kill()
	if err := r.AwaitWatches(ctx, exporter, w, 1); err != nil {
		return m, err
	}
	const frames = 2 // of the snapshot of nothing: its begin and its end
	if err := exporter.AwaitRecords(ctx, frames); err != nil {
		return m, err
	}
	before, err := exporter.Usage()
	if err != nil {
		return m, err
	}
	if err := r.Desk.Release(ctx, w); err != nil {
		return m, err
	}
	if err := exporter.AwaitRecords(ctx, frames+w.Events); err != nil {
		return m, err
	}
	after, err := exporter.Stop()
	return harness.Measured{Events: w.Events, CPU: after.CPU - before.CPU, Peak: after.PeakRSS}, err
}
