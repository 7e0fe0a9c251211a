package kafka

import "testing"

// TestPortsStayWithTheirCluster holds while no broker listens on them.
func TestPortsStayWithTheirCluster(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	taken := map[int]bool{}
	for range blocks {
		ports, release, err := reservePorts(1)
		if err != nil {
			break // other programs may have some
		}
		defer release()
		if taken[ports[0]] {
			t.Fatalf("port %d is two clusters'", ports[0])
		}
		taken[ports[0]] = true
	}
	if len(taken) < blocks/2 {
		t.Fatalf("%d blocks of ports are free, want most of %d", len(taken), blocks)
	}
	if _, _, err := reservePorts(blockSize + 1); err == nil {
		t.Error("more ports than a block has: got them")
	}
}
