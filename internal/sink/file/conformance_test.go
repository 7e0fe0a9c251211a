package file

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

func TestConformance(t *testing.T) {
	sinktest.Run(t, sinktest.Harness{New: func(t *testing.T) *sinktest.Env { return newEnv(t, Options{}) }})
}

func TestConformanceRotated(t *testing.T) {
	sinktest.Run(t, sinktest.Harness{New: func(t *testing.T) *sinktest.Env { return newEnv(t, Options{MaxBytes: 2500}) }})
}

// testDisk is a file system that can be full.
type testDisk struct {
	full  atomic.Bool
	room  atomic.Int64   // how many bytes of a write a full disk still takes
	fails map[string]int // how often calls still fail, by name
}

func (d *testDisk) open(path string) (handle, error) {
	if d.full.Load() {
		if _, err := os.Stat(path); err != nil {
			return nil, unix.ENOSPC
		}
	}
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	return &diskFile{f, d}, nil
}

type diskFile struct {
	handle
	disk *testDisk
}

func (f *diskFile) Write(p []byte) (int, error) {
	if !f.disk.full.Load() {
		return f.handle.Write(p)
	}
	n, err := f.handle.Write(p[:min(int64(len(p)), f.disk.room.Load())])
	if err == nil {
		err = unix.ENOSPC
	}
	return n, err
}

func (f *diskFile) call(name string, do func() error) error {
	if f.disk.fails[name] > 0 {
		f.disk.fails[name]--
		return unix.EIO
	}
	return do()
}

func (f *diskFile) Sync() error { return f.call("sync", f.handle.Sync) }

func (f *diskFile) Truncate(size int64) error {
	return f.call("truncate", func() error { return f.handle.Truncate(size) })
}

func newEnv(t *testing.T, o Options) *sinktest.Env {
	o.Path = filepath.Join(t.TempDir(), "changes.ndjson")
	d := &testDisk{}
	d.room.Store(700)
	return &sinktest.Env{
		SkipsTombstones: true,
		Sink:            func(t *testing.T) sink.Sink { return newTestLog(t, o, d) },
		Messages:        func(t *testing.T) []sinktest.Stored { return stored(t, o.Path) },
		Crash:           func(s sink.Sink) { _ = s.(*Log).file.Close() },
		Foreign:         func(t *testing.T) { appendTo(t, o.Path, "{\"id\":\"not ours\"}\nplain text without an end") },
		Stall: func(*testing.T) func() {
			d.full.Store(true)
			return func() { d.full.Store(false) }
		},
		Truncate: func(t *testing.T) { truncateTo(t, o.Path, sizeOf(t, o.Path)/2) },
		Recreate: func(t *testing.T) {
			for _, path := range files(t, o.Path) {
				remove(t, path)
			}
		},
	}
}

func newTestLog(t *testing.T, o Options, d *testDisk) *Log {
	t.Helper()
	l := New(o).(*Log)
	l.firstWait = 1
	if d != nil {
		l.openFile = d.open
	}
	t.Cleanup(func() { _ = l.release() })
	return l
}

// files are the paths of the rotated files, oldest first, and of the active one.
func files(t *testing.T, active string) []string {
	t.Helper()
	paths, err := filepath.Glob(active[:len(active)-len(".ndjson")] + "-*.ndjson")
	must(t, err)
	slices.Sort(paths)
	if _, err := os.Stat(active); err == nil {
		paths = append(paths, active)
	}
	return paths
}

func stored(t *testing.T, active string) []sinktest.Stored {
	t.Helper()
	var all []sinktest.Stored
	for _, path := range files(t, active) {
		content := read(t, path)
		for len(content) > 0 {
			line, rest, _ := bytes.Cut(content, []byte("\n"))
			var event struct{ ID string }
			_ = json.Unmarshal(line, &event) // a foreign line is no event
			all = append(all, sinktest.Stored{ID: event.ID, Value: line})
			content = rest
		}
	}
	return all
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	must(t, err)
	return content
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(t, err)
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	must(t, f.Close())
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	return info.Size()
}

func truncateTo(t *testing.T, path string, size int64) {
	t.Helper()
	must(t, os.Truncate(path, size))
}

func remove(t *testing.T, path string) {
	t.Helper()
	must(t, os.Remove(path))
}
