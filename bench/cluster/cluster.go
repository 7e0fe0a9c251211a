// Package cluster is what a benchmark against a real API server stands on: the server, and a directory.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/kubernetes"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/test/testcluster"
)

// Cluster is the API server with a directory for the exporter and its sinks.
type Cluster struct {
	*testcluster.Cluster
	Dir string
}

// Main is harness.Main for a benchmark against an API server with the flags.
func Main(b harness.Benchmark, run func(context.Context, *Cluster) ([]harness.Figure, error), flags ...string) {
	b.Run = func(ctx context.Context) (figures []harness.Figure, err error) {
		dir, err := os.MkdirTemp("", "kubecdc-bench-")
		if err != nil {
			return nil, fmt.Errorf("make a directory: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		server, err := testcluster.Start(ctx, testcluster.Options{APIServerFlags: flags})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, server.Stop()) }()
		return run(ctx, &Cluster{server, dir})
	}
	harness.Main(b)
}

// Client uses the encoding that the API server likes best.
func (c *Cluster) Client() (*kubernetes.Clientset, error) {
	config := c.RESTConfig()
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("build a client: %w", err)
	}
	return client, nil
}
