package testcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// EtcdPort is where the cluster's etcd listens on 127.0.0.1.
func (c *Cluster) EtcdPort() (int, error) {
	text, err := os.ReadFile(filepath.Join(c.options.DataDir, "etcd.port"))
	if err != nil {
		return 0, fmt.Errorf("find etcd: %w", err)
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// NewNeighbour starts another API server on the cluster's etcd, as a control plane of two has it, and stops it at the
// test's end. It reaches etcd at the port, and has the same users and the same certificate. Where KUBECDC_KUBERNETES
// asks for another version, the neighbour is of the project's own, so that the two are of different ones.
//
// Both have one identity, that of this machine: a test that needs two Leases makes the second.
func NewNeighbour(tb testing.TB, c *Cluster, etcdPort int, flags ...string) *Cluster {
	tb.Helper()
	dir := tb.TempDir()
	n := &Cluster{binary: c.binary, config: c.config, options: Options{DataDir: dir, SplitProcesses: true, APIServerFlags: flags}}
	err := os.WriteFile(filepath.Join(dir, "etcd.port"), []byte(strconv.Itoa(etcdPort)), 0o600)
	for _, name := range []string{"apiserver.crt", "apiserver.key", "serviceaccount.key", "tokens.csv"} {
		content, readErr := os.ReadFile(filepath.Join(c.options.DataDir, name))
		err = errors.Join(err, readErr, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(tb.Context(), startLimit)
	defer cancel()
	tb.Cleanup(func() {
		if err := n.Stop(); err != nil {
			tb.Error(err)
		}
	})
	if err := n.StartAPIServer(ctx); err != nil {
		tb.Fatal(err)
	}
	return n
}

// APIServerAddress is where the API server listens.
func (c *Cluster) APIServerAddress() (string, error) {
	text, err := os.ReadFile(filepath.Join(c.options.DataDir, "apiserver.port"))
	if err != nil {
		return "", fmt.Errorf("find the API server: %w", err)
	}
	return "127.0.0.1:" + strings.TrimSpace(string(text)), nil
}
