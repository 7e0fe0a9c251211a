package embedded_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/nats"
	"github.com/kubecdc/kubecdc/internal/sink/nats/embedded"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestI1EmbeddedServerKeepsTheStream, which is there again after a restart.
func TestI1EmbeddedServerKeepsTheStream(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir := t.TempDir()
	server := start(t, dir)
	writer := newSink(t, server.URL())
	if _, err := sinktest.Open(ctx, writer, ""); err != nil {
		t.Fatal(err)
	}
	before, err := writer.Write(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	const id = "0a1b2c3d/pods/shop/web/u/1/added"
	if _, err := writer.Write(ctx, []sink.Message{{ID: id, Destination: "k8s.a"}}); err != nil {
		t.Fatal(err)
	}
	server.Shutdown()
	server = start(t, dir)
	reader := newSink(t, server.URL())
	ids, err := sinktest.Open(ctx, reader, before)
	if err != nil || len(ids) != 1 || ids[0] != id {
		t.Fatalf("got %q and %v", ids, err)
	}
}

func start(t *testing.T, dir string) *embedded.Server {
	t.Helper()
	server, err := embedded.Start(dir, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Shutdown)
	return server
}

func newSink(t *testing.T, url string) *nats.Sink {
	t.Helper()
	s, err := nats.New(nats.Options{URL: url, Stream: "K8S", Subjects: []string{"k8s.>"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.WithoutCancel(t.Context())) })
	return s
}
