package batch

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestPartitionIsJavas compares with what Kafka's BuiltInPartitioner.partitionForKey has said.
func TestPartitionIsJavas(t *testing.T) {
	golden, err := os.ReadFile("testdata/java-partitions.txt")
	must(t, err)
	for line := range strings.Lines(string(golden)) {
		var n int
		var want int32
		var key string
		if _, err := fmt.Sscanf(line, "%d %d %q", &n, &want, &key); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if got := Partition([]byte(key), n); got != want {
			t.Errorf("key %q of %d partitions: got %d, want %d", key, n, got, want)
		}
	}
}
