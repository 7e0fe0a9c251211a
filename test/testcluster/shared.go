package testcluster

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// startLimit bounds a start within a test, with the first build on a small
// machine.
const startLimit = 20 * time.Minute

// New starts a cluster for one test and stops it at the test's end.
func New(tb testing.TB, options Options) *Cluster {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), startLimit)
	defer cancel()
	c, err := Start(ctx, options)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return c
}

// Shared is one cluster for all tests of a package, started by the first test
// that asks for it:
//
//	var shared testcluster.Shared
//
//	func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }
//
//	func TestThing(t *testing.T) { cluster := shared.Get(t) ... }
//
// Tests that kill the cluster start their own with New.
type Shared struct {
	Options Options

	once    sync.Once
	cluster *Cluster
	err     error
}

// Get returns the cluster, starting it if this is the first call.
func (s *Shared) Get(tb testing.TB) *Cluster {
	tb.Helper()
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startLimit)
		defer cancel()
		s.cluster, s.err = Start(ctx, s.Options)
	})
	if s.err != nil {
		tb.Fatal(s.err)
	}
	return s.cluster
}

// Main runs the tests, stops the cluster if one was started, and returns the
// exit code.
func (s *Shared) Main(m *testing.M) int {
	code := m.Run()
	if s.cluster == nil {
		return code
	}
	if err := s.cluster.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}
