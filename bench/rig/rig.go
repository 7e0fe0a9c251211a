// Package rig is what a benchmark of the whole exporter stands on: its binary, as it is released, a replay server in a
// process of its own, and a directory for what the exporter writes.
package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/bench"
	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
	"github.com/kubecdc/kubecdc/test/kafka"
)

// serveRole is the role of the replay server's process.
const serveRole = "serve"

// serve is the replay server as a harness.Role.
func serve(ctx context.Context, text json.RawMessage, reply func(any) error) error {
	var spec replay.Spec
	if err := json.Unmarshal(text, &spec); err != nil {
		return fmt.Errorf("read the spec: %w", err)
	}
	return replay.Serve(ctx, spec, func(address replay.Address) error { return reply(address) })
}

// startServer starts a replay server of the fixture in a process of its own.
func startServer(ctx context.Context) (*harness.Child, replay.Address, error) {
	var address replay.Address
	server, err := harness.Start(ctx, serveRole, replay.Spec{Template: bench.PodTemplate()})
	if err != nil {
		return nil, address, err
	}
	if err := server.Reply(&address); err != nil {
		return nil, address, errors.Join(err, server.Stop())
	}
	return server, address, nil
}

// Rig is the binary, the server and the directory.
type Rig struct {
	Dir     string
	Address replay.Address
	Desk    *replay.Desk
	binary  string
	server  *harness.Child
	kafka   *kafka.Cluster // nil where none was asked for
}

// Main is harness.Main for a benchmark that stands on a rig.
func Main(b harness.Benchmark, run func(context.Context, *Rig) ([]harness.Figure, error)) {
	roles := map[string]harness.Role{serveRole: serve, insideRole: runInside}
	maps.Copy(roles, b.Roles)
	b.Roles = roles
	b.Run = func(ctx context.Context) (figures []harness.Figure, err error) {
		r, err := assemble(ctx)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, r.close()) }()
		return run(ctx, r)
	}
	harness.Main(b)
}

// assemble builds the exporter and starts the server. close removes what was made.
func assemble(ctx context.Context) (*Rig, error) {
	dir, err := os.MkdirTemp("", "kubecdc-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	r := &Rig{Dir: dir}
	if r.binary, err = harness.Build(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if r.server, r.Address, err = startServer(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	r.Desk = replay.NewDesk(r.Address)
	return r, nil
}

// Kafka starts a real Apache Kafka, which lasts as long as the rig, and returns its brokers.
func (r *Rig) Kafka(ctx context.Context) ([]string, error) {
	err := kafka.Available(ctx)
	if err == nil {
		r.kafka, err = kafka.New(ctx, kafka.Options{})
	}
	if err != nil {
		return nil, err
	}
	return r.kafka.Brokers(), nil
}

// close stops the servers and removes the directory.
func (r *Rig) close() error {
	var err error
	if r.kafka != nil {
		err = r.kafka.Close()
	}
	return errors.Join(r.server.Stop(), os.RemoveAll(r.Dir), err)
}

// Line is one exporter with its state and its file; it can be started more than once.
type Line struct {
	*Rig
	dir       string
	Resources string   // what it watches; "" is pods
	Rules     string   // of pods, YAML of the keys beside resource; "" is none. It writes to its file then
	FileKeys  string   // of the file's sink, YAML of keys beside file; "" is none
	Sinks     []string // sinks beside the file
	Config    string   // YAML, with sinks instead of the file; "" is none
}

// NewLine returns an exporter with a fresh state. Remove removes what it writes.
func (r *Rig) NewLine(name string) (*Line, error) {
	l := &Line{Rig: r, dir: filepath.Join(r.Dir, name)}
	if err := os.Mkdir(l.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	return l, nil
}

// Remove removes state and file.
func (l *Line) Remove() error { return os.RemoveAll(l.dir) }

// StateDir is the directory of its state.
func (l *Line) StateDir() string { return filepath.Join(l.dir, "state") }

// Follow follows the file that the exporter writes.
func (l *Line) Follow() (*Follower, error) { return Follow(l.output()) }

func (l *Line) output() string { return filepath.Join(l.dir, "changes.ndjson") }

// Start starts the exporter in the world.
func (l *Line) Start(w replay.World) (*harness.Exporter, error) {
	kubeconfig, err := harness.Kubeconfig(l.dir, l.Address.Host(w), l.Address.CA)
	if err != nil {
		return nil, err
	}
	resources := l.Resources
	if resources == "" {
		resources = "pods"
	}
	args := []string{"--kubeconfig", kubeconfig, "--state-dir", l.StateDir(), "--listen", "127.0.0.1:0"}
	if l.Rules == "" && l.FileKeys == "" {
		args = append(args, "--resources", resources)
	}
	destination, err := l.destination()
	if err != nil {
		return nil, err
	}
	args = append(args, destination...)
	for _, sink := range l.Sinks {
		args = append(args, "--sink", sink)
	}
	return harness.StartExporter(l.binary, args...)
}

// StartAll starts the exporter in worlds of several clusters, or of one. Each has a file, and a stream of its own.
func (l *Line) StartAll(worlds []replay.World) (*harness.Exporter, error) {
	if len(worlds) == 1 {
		return l.Start(worlds[0])
	}
	var text strings.Builder
	text.WriteString("clusters:\n")
	for _, w := range worlds {
		dir := filepath.Join(l.dir, fmt.Sprint(w.Cluster))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make a directory: %w", err)
		}
		kubeconfig, err := harness.Kubeconfig(dir, l.Address.Host(w), l.Address.CA)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&text, "- {name: c%d, kubeconfig: %s}\n", w.Cluster, kubeconfig)
	}
	fmt.Fprintf(&text, "resources: [%q]\nsinks:\n- file: {path: %q}\n", l.Resources, filepath.Join(l.dir, "{cluster}.ndjson"))
	for _, url := range l.Sinks {
		fmt.Fprintf(&text, "- nats: {url: %q}\n", url)
	}
	path := filepath.Join(l.dir, "config.yaml")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		return nil, fmt.Errorf("write the configuration: %w", err)
	}
	return harness.StartExporter(l.binary, "--config", path, "--state-dir", l.StateDir(), "--listen", "127.0.0.1:0")
}

// destination is the arguments that say where to write to.
func (l *Line) destination() ([]string, error) {
	config := l.Config
	if l.Rules != "" || l.FileKeys != "" {
		config = fmt.Sprintf("resources:\n  - {resource: pods, %s}\nsinks:\n  - {file: {path: %s}, %s}\n", l.Rules, l.output(), l.FileKeys)
	}
	if config == "" {
		return []string{"--sink", "file://" + l.output()}, nil
	}
	path := filepath.Join(l.dir, "config.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return nil, fmt.Errorf("write the configuration: %w", err)
	}
	return []string{"--config", path}, nil
}

// Poll is how often a benchmark looks at the file, where it need not know sooner.
const Poll = 20 * time.Millisecond
