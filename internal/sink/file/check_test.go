package file

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

func check(t *testing.T, o Options) error {
	t.Helper()
	target := New(o)
	note, err := target.(*Log).Check(t.Context())
	if note != "" {
		t.Errorf("note %q", note)
	}
	return err
}

// TestCheckLeavesTheDirectoryAsItIs, and a file that is there, too.
func TestCheckLeavesTheDirectoryAsItIs(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	if err := check(t, Options{Path: path, MaxBytes: 100}); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left behind %v, %v", entries, err)
	}
	if err := os.WriteFile(path, []byte(`{"half`), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, link} {
		if err := check(t, Options{Path: p, MaxBytes: 100}); err != nil {
			t.Error(err)
		}
	}
	after, err := os.Stat(path)
	if err != nil || after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) || after.Mode() != before.Mode() {
		t.Errorf("got %v, %v, want %v", after, err, before)
	}
}

// TestCheckSaysWhatOpenWould, for whoever tries it first.
func TestCheckSaysWhatOpenWould(t *testing.T) {
	dir := t.TempDir()
	plain, loop := filepath.Join(dir, "plain"), filepath.Join(dir, "loop")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, want string }{
		{filepath.Join(dir, "nope", "out"), "no such file or directory: create the directory"},
		{filepath.Join(plain, "out"), "not a directory: create the directory"},
		{dir, "is a directory: name a file in the directory"},
		{loop, "too many levels of symbolic links: choose another path"},
	} {
		err := check(t, Options{Path: c.path})
		var permanent *sink.PermanentError
		if want := "check file " + c.path + ": " + c.want; !errors.As(err, &permanent) || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// TestI10CheckFindsTheOwner, and leaves the lock to the next owner.
func TestI10CheckFindsTheOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	owner := New(Options{Path: path})
	if _, err := sinktest.Open(t.Context(), owner, ""); err != nil {
		t.Fatal(err)
	}
	want := "open file " + path + ": in use by another process: stop it, or give each its own file"
	if err := check(t, Options{Path: path}); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if err := owner.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := check(t, Options{Path: path}); err != nil {
		t.Error(err)
	}
	if _, err := sinktest.Open(t.Context(), owner, ""); err != nil {
		t.Error(err)
	}
	if err := owner.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
