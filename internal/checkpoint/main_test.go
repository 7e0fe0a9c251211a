package checkpoint

import (
	"context"
	"log/slog"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestMain runs the test binary as a child process where a test asks for one.
func TestMain(m *testing.M) {
	if dir := os.Getenv("CHECKPOINT_CHILD"); dir != "" {
		panic(failLog(dir)) // which has ended the process
	}
	goleak.VerifyTestMain(m)
}

var (
	pods    = &change.Stream{Resource: change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}}
	secrets = &change.Stream{Resource: change.Resource{Version: "v1", Name: "secrets", Kind: "Secret"}, Namespace: "shop"}
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// open opens the state and closes it with the test.
func open(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(context.Background(), dir, Options{Logger: quiet()})
	must(t, err)
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

func closeStore(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// object is a record of one object of pods.
func object(op change.Op, name, uid, version string) *change.Record {
	return &change.Record{
		Stream: pods, Op: op, Key: change.Key{Namespace: "shop", Name: name}, UID: uid, ResourceVersion: version,
	}
}
