package shape

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/shape/transform"
)

// BenchmarkApply filters, cuts and redacts the Pod of the benchmarks, less what the decoder cuts.
func BenchmarkApply(b *testing.B) {
	object, err := os.ReadFile(filepath.Join("..", "..", "bench", "testdata", "pod.template.json"))
	must(b, err)
	object = regexp.MustCompile(`,"managedFields":.*\}\]\},("spec":\{"volumes")`).ReplaceAll(object, []byte("},$1"))
	object = regexp.MustCompile(`"kubectl.kubernetes.io/last[^\n]*\\n",("prom)`).ReplaceAll(object, []byte("$1"))
	for name, o := range map[string]Options{
		"filter": {Filter: `object.status.phase == "Running"`},
		"rules":  {Rules: transform.Rules{Drop: []string{".spec.tolerations"}, Env: []string{"*PASSWORD*", "*TOKEN*"}}},
		"both":   {Filter: `object.status.phase == "Running"`, Rules: transform.Rules{Drop: []string{".spec.tolerations"}, Env: []string{"*PASSWORD*", "*TOKEN*"}}},
	} {
		b.Run(name, func(b *testing.B) {
			o.Key, o.Failed = transform.Key{Secret: []byte("key")}, func(_ *change.Record, err error) { b.Fatal(err) }
			s, err := New(o)
			must(b, err)
			b.SetBytes(int64(len(object)))
			b.ReportAllocs()
			for b.Loop() {
				rec := change.Record{Stream: &change.Stream{}, Op: change.Updated, Object: object}
				if s.Apply(&rec); rec.Filtered {
					b.Fatal("filtered")
				}
			}
		})
	}
}
