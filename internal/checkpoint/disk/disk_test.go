package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestMakeDirIsForItsOwnerAlone(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "a", "b")
	for range 2 { // the second finds it
		if err := MakeDir(dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{filepath.Dir(dir), dir} {
		if info, err := os.Stat(path); err != nil || info.Mode() != os.ModeDir|0o700 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

func TestMakeDirRefusesAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		if err := MakeDir(dir); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("make %s: %v", dir, err)
		}
	}
}

func TestSyncDirNeedsTheDirectory(t *testing.T) {
	if err := SyncDir(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestUsageNeeds(t *testing.T) {
	for _, c := range []struct {
		usage Usage
		full  bool
	}{
		{Usage{Free: 99, Total: 1000}, true},
		{Usage{Free: 100, Total: 1000}, false},
		{Usage{}, false}, // not known
	} {
		var full *FullError
		if err := c.usage.Needs(100, "x"); errors.As(err, &full) != c.full {
			t.Errorf("%+v: %v", c.usage, err)
		}
	}
}

func TestUsageOf(t *testing.T) {
	if usage, err := UsageOf(t.TempDir()); err != nil || usage.Total == 0 || usage.Free > usage.Total {
		t.Errorf("got %+v, %v", usage, err)
	}
	if _, err := UsageOf("/none/such"); err == nil {
		t.Error("no error of a directory that is not there")
	}
}

func TestIsFull(t *testing.T) {
	for err, want := range map[error]bool{syscall.ENOSPC: true, syscall.EDQUOT: true, syscall.EIO: false} {
		if got := IsFull(fmt.Errorf("write: %w", &os.PathError{Op: "write", Err: err})); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

func TestAnIDStaysAndIsTheDirectorysOwn(t *testing.T) {
	one, other := filepath.Join(t.TempDir(), "a"), t.TempDir()
	first, err := ID(one, "member")
	if err != nil || len(first) != 2*idSize {
		t.Fatalf("got %q, %v", first, err)
	}
	if again, err := ID(one, "member"); err != nil || again != first {
		t.Errorf("it was %s, and is %s, %v", first, again, err)
	}
	if another, err := ID(other, "member"); err != nil || another == first {
		t.Errorf("two directories have %s, %v", another, err)
	}
	if err := os.WriteFile(filepath.Join(one, "member"), []byte("cut"), 0o600); err != nil {
		t.Fatal(err)
	}
	if mended, err := ID(one, "member"); err != nil || len(mended) != 2*idSize {
		t.Errorf("a damaged one stays: %q, %v", mended, err)
	}
}
