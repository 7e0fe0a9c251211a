package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/test/kafka"
)

// site is where an exporter runs, and what it writes to.
type site struct {
	dir        string
	kubeconfig string
	sinks      []string // entries of the configuration
	closers    []func() error
}

// open starts what the sinks of these kinds need, each a process of its own.
func (s *site) open(ctx context.Context, kinds []string) error {
	for _, kind := range kinds {
		var entry string
		switch kind {
		case "file":
			entry = fmt.Sprintf("file: {path: %q}", filepath.Join(s.dir, "out.ndjson"))
		case "nats":
			server, err := harness.StartNATS(ctx, s.dir)
			if err != nil {
				return err
			}
			s.closers = append(s.closers, func() error { server.Kill(); return nil })
			entry = fmt.Sprintf("nats: {url: %q}", server.URL)
		case "kafka":
			cluster, err := kafka.New(ctx, kafka.Options{})
			if err != nil {
				return err
			}
			s.closers = append(s.closers, cluster.Close)
			entry = fmt.Sprintf("kafka: {brokers: [%s]}", strings.Join(cluster.Brokers(), ", "))
		default:
			return fmt.Errorf("sink %q: no such kind; allowed: file, nats, kafka", kind)
		}
		s.sinks = append(s.sinks, fmt.Sprintf("- {name: %s, %s}\n", kind, entry))
	}
	return nil
}

func (s *site) close() (err error) {
	for _, c := range s.closers {
		if failed := c(); err == nil {
			err = failed
		}
	}
	return err
}

// start runs the exporter, whose state is empty.
func (s *site) start(ctx context.Context, before bool) (*harness.Exporter, error) {
	binary, err := harness.Build(ctx)
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("cluster: sizing\nresources: [{resource: configmaps, namespaces: [%s], before: %t}]\nsinks:\n%sstate: {dir: %q}\nlisten: 127.0.0.1:0\n",
		namespace, before, strings.Join(s.sinks, ""), s.state())
	path := filepath.Join(s.dir, "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("write the configuration: %w", err)
	}
	return harness.StartExporter(binary, "-f", path, "--kubeconfig", s.kubeconfig)
}

func (s *site) state() string { return filepath.Join(s.dir, "state") }

// delivered says whether every sink holds so many records, as the exporter says.
func (s *site) delivered(ctx context.Context, records int) bool {
	var status struct {
		Sinks map[string]struct{ Records int }
	}
	if harness.ReadStatus(ctx, s.state(), &status) != nil || len(status.Sinks) < len(s.sinks) {
		return false
	}
	for _, sink := range status.Sinks {
		if sink.Records < records {
			return false
		}
	}
	return true
}

// stateBytes is the size of all files of the state.
func (s *site) stateBytes() (size int64, err error) {
	err = filepath.WalkDir(s.state(), func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}
