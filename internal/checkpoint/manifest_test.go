package checkpoint

import (
	"bytes"
	"testing"

	"github.com/cockroachdb/pebble/v2/record"
)

// manifest is a file of records as Pebble writes its manifest: short ones, and some that cross a block's border.
func manifest(t *testing.T) []byte {
	t.Helper()
	var file bytes.Buffer
	w := record.NewWriter(&file)
	for _, size := range []int{80, 90, 100, manifestBlock, 5, 70_000, 33, manifestBlock - chunkHeader - 3, 60} {
		_, err := w.WriteRecord(bytes.Repeat([]byte{'x'}, size))
		must(t, err)
	}
	must(t, w.Close())
	return file.Bytes()
}

// TestI5CutManifestIsNoDamage: a crash can cut the file anywhere, or leave zeros after the cut.
func TestI5CutManifestIsNoDamage(t *testing.T) {
	file := manifest(t)
	for cut := 0; cut <= len(file); cut += 1 + cut/100 {
		if at := damagedChunk(file[:cut]); at >= 0 {
			t.Fatalf("cut at %d of %d: damaged at %d", cut, len(file), at)
		}
	}
	if at := damagedChunk(append(bytes.Clone(file), make([]byte, 5000)...)); at >= 0 {
		t.Errorf("with zeros at the end: damaged at %d", at)
	}
}

func TestI5WrongByteInManifestIsFound(t *testing.T) {
	file := manifest(t)
	for at := 0; at < len(file); at += 1 + at/500 {
		for _, wrong := range []byte{0x01, 0x80, 0xff} {
			file[at] ^= wrong
			if damagedChunk(file) < 0 && at%manifestBlock < manifestBlock-chunkHeader {
				t.Fatalf("byte %d of %d inverted by %#x is not found", at, len(file), wrong)
			}
			file[at] ^= wrong
		}
	}
}
