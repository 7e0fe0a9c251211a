package kafka

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
)

// Shared is one cluster for all tests of a package, started by the first test
// that asks for it:
//
//	var shared kafka.Shared
//
//	func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }
//
//	func TestThing(t *testing.T) { cluster := shared.Get(t) ... }
//
// Each test takes topic names of its own. Tests that do harm to brokers start
// their own with Start.
type Shared struct {
	Options Options

	once    sync.Once
	cluster *Cluster
	err     error
}

// Get returns the cluster, starting it if this is the first call.
func (s *Shared) Get(tb testing.TB) *Cluster {
	tb.Helper()
	s.once.Do(func() { s.cluster, s.err = New(context.Background(), s.Options) })
	if s.err != nil {
		tb.Fatal(s.err)
	}
	tb.Cleanup(func() { s.cluster.showLogs(tb) })
	s.cluster.showKind(tb)
	return s.cluster
}

// Main runs the tests, ends the cluster if one was started, and returns the
// exit code. m is *testing.M, or what wraps it.
func (s *Shared) Main(m interface{ Run() int }) int {
	code := m.Run()
	if err := s.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// Stop ends the cluster if one was started. It is for a TestMain that has more to do than Main.
func (s *Shared) Stop() error {
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Close()
}
