package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// TestI9StateIsItsOwnersAlone: nobody else may read a file of the state, also where the directory was there before, and
// where an earlier version made the files.
func TestI9StateIsItsOwnersAlone(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o755))
	beside := filepath.Join(dir, "changes.ndjson")
	must(t, os.WriteFile(beside, nil, 0o640))
	must(t, os.Chmod(beside, 0o640))
	fill := func() {
		s := open(t, dir)
		for n := range 40 {
			must(t, commitNumbered(s, n+1))
		}
		must(t, s.db.Flush())
		spool := &spooler{t: t, s: s, sink: "lake"}
		spool.put(fifo.Main, object(change.Added, "web", "u", "1"))
		wantPrivate(t, dir, beside)
		must(t, s.Close())
		wantPrivate(t, dir, beside)
	}
	fill()
	wider(t, dir, beside)
	s := open(t, dir)
	wantPrivate(t, dir, beside)
	must(t, s.Close())
	fill()
	if info, err := os.Stat(beside); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("a file that is not the state's has the mode %v (%v)", info.Mode(), err)
	}
}

func TestI9NewDirectoryIsItsOwnersAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "state")
	must(t, open(t, dir).Close())
	for _, made := range []string{dir, filepath.Dir(dir)} {
		if info, err := os.Stat(made); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s has the mode %v (%v)", made, info.Mode(), err)
		}
	}
}

// files calls do for each of the state's files.
func files(t *testing.T, dir, beside string, do func(path string, mode fs.FileMode)) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, entry := range entries {
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // the store deletes what it has compacted
		}
		must(t, err)
		if path := filepath.Join(dir, entry.Name()); path != beside {
			do(path, info.Mode())
		}
	}
}

func wantPrivate(t *testing.T, dir, beside string) {
	t.Helper()
	files(t, dir, beside, func(path string, mode fs.FileMode) {
		if mode.Perm() != 0o600 {
			t.Errorf("%s has the mode %s", path, mode)
		}
	})
}

// wider lets others read the files, as an earlier version did.
func wider(t *testing.T, dir, beside string) {
	t.Helper()
	n := 0
	files(t, dir, beside, func(path string, _ fs.FileMode) {
		must(t, os.Chmod(path, 0o644))
		n++
	})
	if n < 5 {
		t.Fatalf("the state has %d files", n)
	}
}
