package file

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// readBack returns the values that one Read brings.
func readBack(t *testing.T, r *Reader) string {
	t.Helper()
	var values []string
	err := r.Read(t.Context(), func(m *sink.Stored) error {
		values = append(values, string(m.Value))
		return nil
	})
	must(t, err)
	return strings.Join(values, " ")
}

// TestI3AReaderGoesThroughRotatedFiles: each line once and in order, however the files are renamed meanwhile.
func TestI3AReaderGoesThroughRotatedFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.ndjson")
	reader, err := NewReader(path, sink.Start{})
	must(t, err)
	if got := readBack(t, reader); got != "" {
		t.Errorf("a file that is not there has %q", got)
	}
	target := New(Options{Path: path, MaxBytes: 30})
	openAt(t, target, "")
	write := func(from, to int) (want string) {
		for i := from; i < to; i++ {
			want += fmt.Sprintf(" value-%d", i)
			if _, err := target.Write(t.Context(), []sink.Message{{ID: fmt.Sprint(i), Value: fmt.Appendf(nil, "value-%d", i)}}); err != nil {
				t.Fatal(err)
			}
		}
		return strings.TrimSpace(want)
	}
	for _, step := range [][2]int{{0, 1}, {1, 2}, {2, 9}, {9, 10}, {10, 25}} {
		want := write(step[0], step[1])
		if got := readBack(t, reader); got != want {
			t.Errorf("read %q, want %q", got, want)
		}
	}
	late, err := NewReader(path, sink.Start{End: true})
	must(t, err)
	if got := readBack(t, late); got != "" {
		t.Errorf("a reader at the end reads %q", got)
	}
	if want, got := write(25, 30), readBack(t, late); got != want {
		t.Errorf("a reader at the end reads %q, want %q", got, want)
	}
	for _, closer := range []func() error{reader.Close, late.Close, func() error { return target.Close(t.Context()) }} {
		if err := closer(); err != nil {
			t.Error(err)
		}
	}
}

// TestAReaderWaitsForTheEndOfALine: what a failed write leaves is cut off again, and is no line.
func TestAReaderWaitsForTheEndOfALine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.ndjson")
	put := func(text string) {
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	reader, err := NewReader(path, sink.Start{})
	must(t, err)
	defer reader.Close()
	for _, step := range [][2]string{{"one\ntw", "one"}, {"one\n", ""}, {"one\ntwo\nthr\x00\n", "two"}, {"one\ntwo\nthree\n", "three"}} {
		put(step[0])
		if got := readBack(t, reader); got != step[1] {
			t.Errorf("of %q it reads %q, want %q", step[0], got, step[1])
		}
	}
}
