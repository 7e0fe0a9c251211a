package file

import (
	"bytes"
	"testing"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// BenchmarkWrite is one batch of 500 events of 2 KiB, most of which is the disk's fsync.
func BenchmarkWrite(b *testing.B) {
	s, err := New(Options{Path: b.TempDir() + "/changes.ndjson", MaxBytes: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := s.Open(b.Context(), ""); err != nil {
		b.Fatal(err)
	}
	defer s.Close(b.Context())
	batch := make([]sink.Message, 500)
	for i := range batch {
		batch[i].Value = bytes.Repeat([]byte{'x'}, 2048)
	}
	b.SetBytes(500 * 2049)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Write(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkIDOf is what reading back costs for one line with its id in front.
func BenchmarkIDOf(b *testing.B) {
	line := append([]byte(`{"specversion":"1.0","id":"0a1b2c3d/pods/shop/web/u/17/updated","data":"`),
		bytes.Repeat([]byte{'x'}, 12<<10)...)
	line = append(line, `"}`...)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if idOf(line) == "" {
			b.Fatal("no id")
		}
	}
}
