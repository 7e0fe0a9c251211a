package file

import (
	"os"
	"path/filepath"
	"testing"
)

func check(t *testing.T, o Options) error {
	t.Helper()
	note, err := New(o).(*Log).Check(t.Context())
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
	must(t, os.WriteFile(path, []byte(`{"half`), 0o600))
	before, err := os.Stat(path)
	must(t, err)
	link := filepath.Join(dir, "link")
	must(t, os.Symlink(path, link))
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

// TestI10FileInUse: both Open and Check find the owner, and Check leaves the lock to the next one.
func TestI10FileInUse(t *testing.T) {
	o := pathIn(t)
	owner, _ := mustOpen(t, o, "")
	want := "open file " + o.Path + ": in use by another process: stop it, or give each its own file"
	_, _, err := opened(t, o, "")
	checkPermanent(t, err, want)
	checkPermanent(t, check(t, o), want)
	mustClose(t, owner)
	if err := check(t, o); err != nil {
		t.Error(err)
	}
	openAt(t, owner, "")
}
