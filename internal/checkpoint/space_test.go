package checkpoint

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/kubecdc/kubecdc/internal/checkpoint/disk"
)

// volume is a disk whose free space the test sets.
type volume struct{ free atomic.Uint64 }

func (v *volume) usage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: v.free.Load(), TotalBytes: 1 << 40}, nil
}

func TestI5FullDiskRefusesAndGoesOn(t *testing.T) {
	dir, vol := t.TempDir(), &volume{}
	vol.free.Store(1 << 30)
	s, err := Open(context.Background(), dir, Options{Logger: quiet(), usage: vol.usage})
	must(t, err)
	must(t, commitNumbered(s, 1))
	vol.free.Store(12 << 20)
	err = commitNumbered(s, 2)
	want := "commit state " + dir + ": only 12 MiB free, 64 MiB needed: free space or enlarge the volume; nothing is lost, saving continues when there is space"
	var full *disk.FullError
	if !errors.As(err, &full) || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if n, err := wholeBatch(s); n != 1 || err != nil {
		t.Errorf("the refused commit left batch %d, %v", n, err)
	}
	must(t, s.Commit(Batch{}))
	vol.free.Store(64 << 20)
	must(t, commitNumbered(s, 2))
	must(t, s.Close())

	vol.free.Store(0)
	if _, err := Open(context.Background(), dir, Options{Logger: quiet(), usage: vol.usage}); !errors.As(err, &full) || !strings.HasSuffix(err.Error(), "nothing is lost, start again when there is space") {
		t.Errorf("Open on a full disk returns %v", err)
	}
	if n, err := wholeBatch(open(t, dir)); n != 2 || err != nil {
		t.Errorf("the state holds batch %d, %v", n, err)
	}
}

func TestI5UnknownDiskSizeIsNotFull(t *testing.T) {
	s, err := Open(context.Background(), t.TempDir(), Options{Logger: quiet(), usage: func(string) (vfs.DiskUsage, error) {
		return vfs.DiskUsage{}, nil
	}})
	must(t, err)
	must(t, commitNumbered(s, 1))
	must(t, s.Close())
	_, err = Open(context.Background(), t.TempDir(), Options{Logger: quiet(), usage: func(string) (vfs.DiskUsage, error) {
		return vfs.DiskUsage{}, syscall.EIO
	}})
	if err == nil || !strings.Contains(err.Error(), "free space: input/output error") {
		t.Errorf("error %v", err)
	}
}

// TestI5DiskFilledByOthers: a write of the log that fails although there was space waits for space, and the commit
// succeeds then.
func TestI5DiskFilledByOthers(t *testing.T) {
	vol := &volume{}
	vol.free.Store(1 << 30)
	var full atomic.Bool
	inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && filepath.Ext(op.Path) == ".log" {
			vol.free.Store(0)
			return syscall.ENOSPC
		}
		return nil
	})
	var asked atomic.Int32
	usage := func(path string) (vfs.DiskUsage, error) {
		if vol.free.Load() == 0 && asked.Add(1) == 3 { // somebody made space
			full.Store(false)
			vol.free.Store(1 << 30)
		}
		return vol.usage(path)
	}
	s, err := Open(context.Background(), t.TempDir(), Options{
		Logger: quiet(), usage: usage, fs: errorfs.Wrap(vfs.Default, inject), exit: func(int) { t.Error("the process would have ended") },
	})
	must(t, err)
	full.Store(true)
	must(t, commitNumbered(s, 1))
	if asked.Load() < 3 {
		t.Error("the commit did not wait for space")
	}
	must(t, s.Close())
}

func TestI7WaitForSpaceEndsWithTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vol := &volume{}
		s := &space{dir: "/d", floor: 1, usage: vol.usage, logger: quiet(), stop: make(chan struct{})}
		began := time.Now()
		time.AfterFunc(90*time.Second, func() { vol.free.Store(1) })
		s.wait()
		if waited := time.Since(began); waited < 90*time.Second || waited > 92*time.Second {
			t.Errorf("the wait took %v, space was there after 90s", waited)
		}
		vol.free.Store(0)
		time.AfterFunc(time.Minute, func() { close(s.stop) })
		s.wait()
	})
}

// TestI7OpenGivesUpInTime: a disk that does not answer holds up the caller no longer than its context, and the
// directory is free again once the disk answers.
func TestI7OpenGivesUpInTime(t *testing.T) {
	dir := t.TempDir()
	answer, reached := make(chan struct{}), make(chan struct{})
	var once atomic.Bool
	inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && once.CompareAndSwap(false, true) {
			close(reached)
			<-answer
		}
		return nil
	})
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		<-reached
		cancel(errors.New("30s are over"))
	}()
	_, err := Open(ctx, dir, Options{Logger: quiet(), fs: errorfs.Wrap(vfs.Default, inject)})
	if err == nil || !strings.HasSuffix(err.Error(), "the disk did not answer in time: check the volume: 30s are over") {
		t.Errorf("error %v", err)
	}
	var inUse *InUseError
	if _, err := Open(context.Background(), dir, Options{Logger: quiet()}); !errors.As(err, &inUse) {
		t.Errorf("while the first Open is under way, the second returns %v", err)
	}
	close(answer)
	awaitUnlocked(t, dir)
	open(t, dir)
}

// awaitUnlocked returns when the directory has no owner.
func awaitUnlocked(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, lockName))
	must(t, err)
	must(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
	must(t, f.Close())
}
