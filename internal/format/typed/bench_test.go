package typed_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/kubecdc/kubecdc/internal/format/typed"
	"github.com/kubecdc/kubecdc/internal/shape/transform"
)

// BenchmarkPod is what a Pod costs as Avro, and what encoding/json costs that reads it and writes it again. ratio is
// the size as Avro by that as JSON, zstd_ratio the same of both compressed.
func BenchmarkPod(b *testing.B) {
	object, err := os.ReadFile("../../source/frame/testdata/pod.json")
	must(b, err)
	cut, err := transform.New(transform.Rules{Drop: []string{".metadata.managedFields"}}, transform.Key{Secret: []byte("any")})
	must(b, err)
	if object, err = cut.Apply(nil, object, transform.Owner{}); err != nil {
		b.Fatal(err)
	}
	of := typeOf(b, documents(b), []byte(`{"apiVersion":"v1","kind":"Pod"}`))
	encoder := typed.NewEncoder(of)
	message, err := encoder.Append(nil, object)
	must(b, err)
	packer, err := zstd.NewWriter(nil)
	must(b, err)
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if message, err = encoder.Append(message[:0], object); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(message))/float64(len(object)), "ratio")
		b.ReportMetric(float64(len(packer.EncodeAll(message, nil)))/float64(len(packer.EncodeAll(object, nil))), "zstd_ratio")
	})
	b.Run("decode", func(b *testing.B) {
		decoder := typed.NewDecoder(of)
		var restored []byte
		for b.Loop() {
			if restored, err = decoder.Append(restored[:0], message); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("json", func(b *testing.B) {
		for b.Loop() {
			var value map[string]any
			must(b, json.Unmarshal(object, &value))
			if _, err := json.Marshal(value); err != nil {
				b.Fatal(err)
			}
		}
	})
}
