package embedded_test

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/kubecdc/kubecdc/internal/sink/nats/embedded"
	"github.com/kubecdc/kubecdc/test/natsserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestI1EmbeddedServerKeepsTheStream, which is there again after a restart.
func TestI1EmbeddedServerKeepsTheStream(t *testing.T) {
	dir := t.TempDir()
	for messages := range uint64(3) {
		server, err := embedded.Start(dir, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Shutdown)
		js := natsserver.Connect(t, server.URL())
		stream, err := js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{Name: "K8S", Subjects: []string{"k8s.>"}})
		if err != nil || stream.CachedInfo().State.Msgs != messages {
			t.Fatalf("life %d: %+v, %v", messages, stream, err)
		}
		if _, err := js.Publish(t.Context(), "k8s.a", nil); err != nil {
			t.Fatal(err)
		}
		js.Conn().Close()
		server.Shutdown()
	}
}
