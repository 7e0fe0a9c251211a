package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kubecdc/kubecdc/internal/checkpoint/disk"
)

// numberedChanges are those after which a log's place is n.
func numberedChanges(n int) (changes Changes, place []byte) {
	text := []byte(strconv.Itoa(n))
	return Changes{}.Set(keyOf(tableMark, "first"), text).Set(keyOf(tableMark, "second"), text), text
}

// filledCopy begins a copy, which is at place 0.
func filledCopy(t *testing.T, dir string, opts Options) *Copy {
	t.Helper()
	c, err := OpenCopy(t.Context(), dir, opts)
	must(t, err)
	must(t, c.Begin(t.Context()))
	changes, place := numberedChanges(0)
	must(t, c.Apply(changes, nil))
	must(t, c.Apply(nil, place))
	return c
}

// TestI5ACrashLeavesACopyAtAnEarlierPlace: never between two, and never one that is half filled.
func TestI5ACrashLeavesACopyAtAnEarlierPlace(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	earlier := 0
	for range 30 {
		fs := vfs.NewCrashableMem()
		opts := OnFS(fs)
		opts.Logger, opts.usage = quiet(), func(string) (vfs.DiskUsage, error) { return vfs.DiskUsage{AvailBytes: 1 << 40}, nil }
		c := filledCopy(t, "copy", opts)
		last := 1 + random.IntN(400)
		for n := 1; n <= last; n++ {
			must(t, c.Apply(numberedChanges(n)))
		}
		crashed := opts
		left := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: random.IntN(101), RNG: random})
		crashed = OnFS(left)
		crashed.Logger, crashed.usage = opts.Logger, opts.usage
		must(t, c.Close())
		again, err := OpenCopy(t.Context(), "copy", crashed)
		must(t, err)
		if place := again.Place(); place != nil {
			for _, name := range []string{"first", "second"} {
				value, _, err := again.db.get(keyOf(tableMark, name))
				must(t, err)
				if !bytes.Equal(value, place) {
					t.Errorf("the copy is at %s and has %s", place, value)
				}
			}
			if n, _ := strconv.Atoi(string(place)); n < last {
				earlier++
			}
		}
		must(t, again.Close())
	}
	if earlier == 0 {
		t.Error("no crash took anything away")
	}
}

// TestACopyIsNoStateBeforeItIsFinished: neither half filled nor whole.
func TestACopyIsNoStateBeforeItIsFinished(t *testing.T) {
	dir := t.TempDir()
	c, err := OpenCopy(t.Context(), dir, Options{})
	must(t, err)
	must(t, c.Begin(t.Context()))
	refused := func(what string) {
		t.Helper()
		must(t, c.Close())
		if _, err := Open(t.Context(), dir, Options{}); !errors.Is(err, ErrRestoring) {
			t.Errorf("%s is opened as a state: %v", what, err)
		}
		if c, err = OpenCopy(t.Context(), dir, Options{}); err != nil {
			t.Fatal(err)
		}
	}
	changes, place := numberedChanges(7)
	must(t, c.Apply(changes.Set(FileKey("bus/1.letter"), []byte("letter")), nil))
	if refused("a half filled copy"); c.Place() != nil {
		t.Errorf("a half filled copy is at %s", c.Place())
	}
	must(t, c.Begin(t.Context()))
	must(t, c.Apply(changes.Set(FileKey("bus/1.letter"), []byte("letter")), nil))
	must(t, c.Apply(nil, place))
	if refused("a copy"); !bytes.Equal(c.Place(), place) || c.IsState() {
		t.Errorf("the copy is at %q, want 7", c.Place())
	}
	var inUse *InUseError
	if _, err := OpenCopy(t.Context(), dir, Options{}); !errors.As(err, &inUse) {
		t.Errorf("a second one has it: %v", err)
	}
	kept := ""
	must(t, c.Finish(place, func(name string, content []byte) error {
		kept += name + "=" + string(content)
		return nil
	}))
	led, found, err := LedAt(t.Context(), dir, Options{})
	if err != nil || !found || !bytes.Equal(led.Logged, place) || kept != "bus/1.letter=letter" {
		t.Errorf("the finished copy is at %q, %t, %v, with %s", led.Logged, found, err, kept)
	}
}

// TestI11AStateStaysUntilACopyBegins: nobody takes one for the other.
func TestI11AStateStaysUntilACopyBegins(t *testing.T) {
	dir := closedState(t, 5)
	c, err := OpenCopy(t.Context(), dir, Options{})
	must(t, err)
	if !c.IsState() || c.Place() != nil {
		t.Errorf("the state is taken for a copy at %s", c.Place())
	}
	changes, place := numberedChanges(1)
	if err := c.Apply(changes, place); err == nil {
		t.Error("a state took what a copy takes")
	}
	must(t, c.Close())
	if n, err := readAll(dir, nil); err != nil || n != 5 {
		t.Errorf("the state is as of batch %d: %v", n, err)
	}
	c = filledCopy(t, dir, Options{})
	if c.IsState() || string(c.Place()) != "0" {
		t.Errorf("the copy is at %s", c.Place())
	}
	must(t, c.Close())
}

// TestADamagedCopyIsFilledAnew, as if there were none.
func TestADamagedCopyIsFilledAnew(t *testing.T) {
	dir := t.TempDir()
	must(t, filledCopy(t, dir, Options{}).Close())
	manifests, err := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
	must(t, err)
	for _, file := range manifests {
		data, err := os.ReadFile(file)
		must(t, err)
		data[8] ^= 0xff
		must(t, os.WriteFile(file, data, 0o600))
	}
	c := filledCopy(t, dir, Options{Logger: quiet()})
	if string(c.Place()) != "0" {
		t.Errorf("the copy is at %s", c.Place())
	}
	must(t, c.Close())
}

// TestAFullDiskStopsACopyAndLeavesIt at its place.
func TestAFullDiskStopsACopyAndLeavesIt(t *testing.T) {
	free := uint64(1 << 40)
	c := filledCopy(t, t.TempDir(), Options{usage: func(string) (vfs.DiskUsage, error) { return vfs.DiskUsage{AvailBytes: free, TotalBytes: 1 << 41}, nil }})
	free = 0
	var full *disk.FullError
	if err := c.Apply(numberedChanges(1)); !errors.As(err, &full) || string(c.Place()) != "0" {
		t.Errorf("the copy is at %s, with %v", c.Place(), err)
	}
	free = 1 << 40
	if err := c.Apply(numberedChanges(1)); err != nil || string(c.Place()) != "1" {
		t.Errorf("the copy is at %s, with %v", c.Place(), err)
	}
	must(t, c.Close())
}

// TestI7ACopyEndsBeforeItsDiskAnswers: what is late writes into what nobody has any more, and ends.
func TestI7ACopyEndsBeforeItsDiskAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan struct{})
		opts := inMemory(vfs.NewMem())
		opts.usage = func(string) (vfs.DiskUsage, error) {
			<-answers
			return vfs.DiskUsage{AvailBytes: 1 << 40, TotalBytes: 1 << 41}, nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := Restore(ctx, "state", opts); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want that the disk did not answer", err)
		}
		close(answers)
	})
}
