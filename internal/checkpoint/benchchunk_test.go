package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// BenchmarkEncode makes chunks of 4 MiB of the Pods of the benchmarks, and says what a record costs.
func BenchmarkEncode(b *testing.B) {
	text, err := os.ReadFile(filepath.Join("..", "..", "bench", "testdata", "pod.template.json"))
	if err != nil {
		b.Fatal(err)
	}
	stream := &change.Stream{Resource: change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}}
	var records []*change.Record
	for size := 0; size < 4<<20; {
		version := fmt.Sprint(1000 + len(records))
		name := "web-" + version
		object := strings.NewReplacer("__NAME__", name, "__UID__", "8a5b1c3d-2e4f-4a6b-8c7d-00000000"+version, "__RV__", version).Replace(string(text))
		size += len(object)
		records = append(records, &change.Record{
			Stream: stream, Op: change.Updated, Key: change.Key{Namespace: "default", Name: name}, UID: name, ResourceVersion: version,
			Object: []byte(object), Received: time.Now(),
		})
	}
	c := &codec{}
	b.SetBytes(4 << 20)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.encode(records); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(records)), "ns/record")
}
