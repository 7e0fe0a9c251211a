package nats

import "testing"

// TestCheckOfServersThatHaveJustStarted and have no leader yet for JetStream.
func TestCheckOfServersThatHaveJustStarted(t *testing.T) {
	servers := startCluster(t)
	options := servers[0].options()
	options.Replicas = 3
	if note, err := check(t, options); err != nil {
		t.Errorf("got %q, %v", note, err)
	}
}
