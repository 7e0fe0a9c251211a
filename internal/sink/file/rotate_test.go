package file

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

// clock is a time that the test sets.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func startOfTime() *clock { return &clock{time.Date(2026, 11, 21, 2, 33, 14, 123, time.UTC)} }

func names(paths []string) []string {
	var all []string
	for _, path := range paths {
		all = append(all, filepath.Base(path))
	}
	return all
}

func openRotating(t *testing.T, o Options, c *clock, mark sink.Mark) (*Log, []string) {
	t.Helper()
	l := newTestLog(t, o, nil)
	l.now = c.now
	return l, openAt(t, l, mark)
}

// rotating is an open log of files with a line each, of which so many are kept; 0 is all.
func rotating(t *testing.T, keep int) (*Log, Options, *clock) {
	t.Helper()
	o, c := pathIn(t), startOfTime()
	o.MaxBytes, o.Keep = 1, keep
	l, _ := openRotating(t, o, c, "")
	return l, o, c
}

func TestI3RotatedNamesSortInTheOrderOfWriting(t *testing.T) {
	l, o, c := rotating(t, 0)
	batch := batchOf(4)
	mustWrite(t, l, batch[:3]) // three within one tick of the clock
	c.at = c.at.Add(-time.Hour)
	mustWrite(t, l, batch[3:])
	want := []string{
		"changes-20261121T023314.000000123Z.ndjson", "changes-20261121T023314.000000124Z.ndjson",
		"changes-20261121T023314.000000125Z.ndjson", "changes.ndjson",
	}
	paths := files(t, o.Path)
	if got := names(paths); !slices.Equal(got, want) {
		t.Fatalf("got %q", got)
	}
	for i, path := range paths {
		if !bytes.Equal(read(t, path), linesOf(batch[i:i+1])) {
			t.Fatalf("%s holds %q", path, read(t, path))
		}
	}
}

func TestRotationFillsFilesToTheLimit(t *testing.T) {
	o, c := pathIn(t), startOfTime()
	batch := batchOf(4)
	for i := range batch {
		batch[i].Value = bytes.Repeat([]byte{'x'}, 99)
	}
	o.MaxBytes = 200
	l, _ := openRotating(t, o, c, "")
	mustWrite(t, l, batch)
	for _, path := range files(t, o.Path) {
		if sizeOf(t, path) != 200 {
			t.Fatalf("%s has %d bytes", path, sizeOf(t, path))
		}
	}
}

func TestKeepLeavesTheYoungestAndWhatAMarkMayNeed(t *testing.T) {
	l, o, c := rotating(t, 2)
	maker := sinktest.Maker{}
	mark := mustWrite(t, l, maker.Batch(6))
	if got := len(files(t, o.Path)); got != 6 {
		t.Fatalf("%d files, want all 6: they are young", got)
	}
	old := files(t, o.Path)[0]
	neighbour := filepath.Join(filepath.Dir(o.Path), "changes-20010101.ndjson")
	appendTo(t, neighbour, "not ours to delete")
	must(t, os.Mkdir(l.sibling("changes-20011121T023314.000000000Z.ndjson"), 0o700)) // nor is this one of ours
	c.at = c.at.Add(young + time.Second)
	behind := maker.Batch(1)
	mustWrite(t, l, behind)
	if got := names(files(t, o.Path)); len(got) != 5 || got[0] != filepath.Base(neighbour) {
		t.Fatalf("left are %q", got)
	}
	if _, err := os.Stat(old); err == nil {
		t.Fatal("the oldest file is still there")
	}
	mustClose(t, l)
	if _, ids := openRotating(t, o, c, mark); !slices.Equal(ids, idsOf(behind)) {
		t.Fatalf("found %q", ids)
	}
}

// TestI1RetentionKeepsWhatIsBehindTheSavedMark however old it is and however many files that are: removed, it would be
// a false loss.
func TestI1RetentionKeepsWhatIsBehindTheSavedMark(t *testing.T) {
	l, o, c := rotating(t, 2)
	maker := sinktest.Maker{}
	mustWrite(t, l, maker.Batch(3))
	saved := mustWrite(t, l, maker.Batch(1))
	l.Keep(saved)
	behind := maker.Batch(6)
	for i := range behind {
		c.at = c.at.Add(young + time.Second)
		mustWrite(t, l, behind[i:i+1])
	}
	if got := len(files(t, o.Path)); got != 7 {
		t.Errorf("%d files, want the one with the mark and all behind it: %q", got, names(files(t, o.Path)))
	}
	mustClose(t, l)
	l, ids := openRotating(t, o, c, saved)
	if !slices.Equal(ids, idsOf(behind)) {
		t.Errorf("found %q", ids)
	}
	later := mustWrite(t, l, maker.Batch(1))
	l.Keep(later)
	c.at = c.at.Add(young + time.Second)
	mustWrite(t, l, maker.Batch(1))
	if got := len(files(t, o.Path)); got != 3 {
		t.Errorf("%d files when the mark has moved on, want 3: %q", got, names(files(t, o.Path)))
	}
}

// The clock stands, so that the only difference between the two files of the mark at 0 is their order.
func TestI1MarkOfAnEmptyFileSurvivesRotation(t *testing.T) {
	l, o, c := rotating(t, 0)
	maker := sinktest.Maker{}
	batch := maker.Batch(5)
	start := mustWrite(t, l, nil)
	mustWrite(t, l, batch)
	mustClose(t, l)
	l, ids := openRotating(t, o, c, start)
	if !slices.Equal(ids, idsOf(batch)) {
		t.Fatalf("found %q", ids)
	}
	remove(t, o.Path)
	openAt(t, l, "")
	later := mustWrite(t, l, nil) // at 0 again, with files before it
	mustWrite(t, l, maker.Batch(2))
	if ids := openAt(t, l, later); len(ids) != 2 {
		t.Fatalf("found %q", ids)
	}
}

func TestI1CrashBetweenRenameAndNewFile(t *testing.T) {
	l, o, c := rotating(t, 0)
	batch := batchOf(3)
	mark := mustWrite(t, l, batch[:1])
	mustWrite(t, l, batch[1:2])
	must(t, os.Rename(o.Path, l.sibling(l.nextName())))
	mustClose(t, l)
	l, ids := openRotating(t, o, c, mark)
	if !slices.Equal(ids, idsOf(batch[1:2])) {
		t.Fatalf("found %q", ids)
	}
	mustWrite(t, l, batch[2:])
	if ids := openAt(t, l, mark); !slices.Equal(ids, idsOf(batch[1:])) {
		t.Fatalf("found %q", ids)
	}
}

func TestI4FullDiskDuringRotationIsWaitedFor(t *testing.T) {
	o := pathIn(t)
	o.MaxBytes = 1
	d := &testDisk{}
	repeats := 0
	o.Retry = func(string, error) {
		repeats++
		d.full.Store(repeats%3 != 0)
	}
	l := newTestLog(t, o, d)
	openAt(t, l, "")
	batch := batchOf(3)
	mustWrite(t, l, batch[:1])
	d.full.Store(true)
	mustWrite(t, l, batch[1:])
	mustClose(t, l)
	for i, path := range files(t, o.Path) {
		if !bytes.Equal(read(t, path), linesOf(batch[i:i+1])) {
			t.Fatalf("%s holds %q", path, read(t, path))
		}
	}
}

func TestI10RotationKeepsTheLock(t *testing.T) {
	l, o, _ := rotating(t, 0)
	mustWrite(t, l, batchOf(3))
	_, _, err := opened(t, o, "")
	checkPermanent(t, err, "open file "+o.Path+": in use by another process: stop it, or give each its own file")
}

// A second process opens the file, and before it comes to the lock the owner rotates and lets the old file go.
func TestI10LockOfARotatedFileIsNotTheFilesLock(t *testing.T) {
	owner, o, _ := rotating(t, 0)
	maker := sinktest.Maker{}
	mustWrite(t, owner, maker.Batch(1))
	late := newTestLog(t, o, nil)
	late.openFile = func(path string) (handle, error) {
		f, err := openFile(path)
		if names := files(t, o.Path); len(names) == 1 {
			mustWrite(t, owner, maker.Batch(1))
		}
		return f, err
	}
	_, err := sinktest.Open(t.Context(), late, "")
	checkPermanent(t, err, "open file "+o.Path+": in use by another process: stop it, or give each its own file")
}

func TestRotationRenamesTheFileBehindALink(t *testing.T) {
	o, c := pathIn(t), startOfTime()
	o.MaxBytes = 1
	real := filepath.Join(t.TempDir(), "real.ndjson")
	appendTo(t, real, "")
	must(t, os.Symlink(real, o.Path))
	l, _ := openRotating(t, o, c, "")
	mustWrite(t, l, batchOf(2))
	if got := len(files(t, real)); got != 2 {
		t.Fatalf("%d files beside the real one, want 2", got)
	}
	if info, err := os.Lstat(o.Path); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Fatalf("the link is no link any more: %v, %v", info, err)
	}
}
