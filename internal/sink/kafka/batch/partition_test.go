package batch

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestPartitionIsThatOfOthers: Java's own verdict is in package kafka's tests, this one needs no JVM.
func TestPartitionIsThatOfOthers(t *testing.T) {
	for _, n := range []int{1, 7, 12, 1000} {
		theirs := kgo.StickyKeyPartitioner(nil).ForTopic("t")
		for _, key := range oddKeys(10_000) {
			if got, want := Partition(key, n), theirs.Partition(&kgo.Record{Key: key}, n); int(got) != want {
				t.Fatalf("key %q of %d partitions: got %d, want %d", key, n, got, want)
			}
		}
	}
}

func oddKeys(n int) [][]byte {
	dice := rand.New(rand.NewPCG(3, 4))
	keys := [][]byte{{}, []byte("ünï-☃"), []byte("/"), {0}, {255, 254}}
	for i := len(keys); i < n; i++ {
		switch i % 3 {
		case 0:
			keys = append(keys, fmt.Appendf(nil, "ns-%d/web-%d", i%17, i))
		case 1:
			key := make([]byte, dice.IntN(40))
			for j := range key {
				key[j] = byte(dice.Uint32())
			}
			keys = append(keys, key)
		case 2:
			keys = append(keys, fmt.Appendf(nil, "ñs%c/%c☃", rune(0x400+i%500), rune(0x4e00+i)))
		}
	}
	return keys
}
