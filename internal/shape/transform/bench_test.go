package transform

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kubecdc/kubecdc/internal/scan"
)

// BenchmarkApply redacts annotations and environment variables of the 12 KiB Pod of the benchmarks.
func BenchmarkApply(b *testing.B) {
	object, err := os.ReadFile(filepath.Join("..", "..", "..", "bench", "testdata", "pod.template.json"))
	must(b, err)
	t, err := New(Rules{Redact: []string{".metadata.annotations"}, Env: []string{"*PASSWORD*", "*TOKEN*", "*SECRET*"}}, Key{Secret: []byte(key)})
	must(b, err)
	worker := t.Worker()
	var proof scan.Proof
	b.SetBytes(int64(len(object)))
	b.ReportAllocs()
	for b.Loop() {
		proof.Prove(object, t.Watched())
		if _, err := worker.Apply(object, &proof, web()); err != nil {
			b.Fatal(err)
		}
	}
}
