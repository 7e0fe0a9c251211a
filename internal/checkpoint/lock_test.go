package checkpoint

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestI10OwnerIsToldAndLeftAlone: to ask who owns a directory makes nothing in it, and takes nothing from the owner.
func TestI10OwnerIsToldAndLeftAlone(t *testing.T) {
	owner := func(dir string) (int, bool) {
		t.Helper()
		pid, running, err := Owner(dir)
		must(t, err)
		return pid, running
	}
	dir := t.TempDir()
	if pid, running := owner(filepath.Join(dir, "none")); running {
		t.Errorf("a directory that is not there is owned by %d", pid)
	}
	if pid, running := owner(dir); running {
		t.Errorf("an empty directory is owned by %d", pid)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	s := open(t, dir)
	for range 2 {
		if pid, running := owner(dir); !running || pid != os.Getpid() {
			t.Errorf("owner %d %t, want this process", pid, running)
		}
	}
	must(t, commitNumbered(s, 1))
	must(t, s.Close())
	other, err := os.Open(filepath.Join(dir, lockName)) // somebody else who asks at the same time
	must(t, err)
	must(t, syscall.Flock(int(other.Fd()), syscall.LOCK_SH|syscall.LOCK_NB))
	defer other.Close()
	if pid, running := owner(dir); running {
		t.Errorf("a closed state is owned by %d", pid)
	}
}
