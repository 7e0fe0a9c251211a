package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kubecdc/kubecdc/internal/change"
)

// closedState is a directory with a state that was closed after batch n.
func closedState(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	s := open(t, dir)
	for i := 1; i <= n; i++ {
		must(t, commitNumbered(s, i))
	}
	must(t, s.Close())
	return dir
}

// crashedState is a directory with a state that was closed after one batch and crashed after a later one: the first
// part is in tables, the second in a log.
func crashedState(t *testing.T, closed, crashed int) string {
	t.Helper()
	dir := closedState(t, closed)
	s := open(t, dir)
	for i := closed + 1; i <= crashed; i++ {
		must(t, commitNumbered(s, i))
		if i%10 == 0 && i < crashed-20 {
			must(t, s.db.Flush()) // the manifest has edits then, and older logs are used again
		}
	}
	left := filepath.Join(t.TempDir(), "left")
	must(t, os.CopyFS(left, os.DirFS(dir)))
	return left
}

// damagedCopy copies the state and inverts one byte of a file of the pattern, at the share of its length.
func damagedCopy(t *testing.T, state, pattern string, share float64) (dir, what string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "state")
	must(t, os.CopyFS(dir, os.DirFS(state)))
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	must(t, err)
	if len(files) == 0 {
		t.Fatalf("no file %s", pattern)
	}
	file := files[len(files)-1] // the newest: an older manifest is not read any more
	data, err := os.ReadFile(file)
	must(t, err)
	if len(data) == 0 {
		t.Fatalf("%s is empty", file)
	}
	at := min(int(share*float64(len(data))), len(data)-1)
	data[at] ^= 0xff
	must(t, os.WriteFile(file, data, 0o600))
	return dir, fmt.Sprintf("%s with byte %d of %d inverted", filepath.Base(file), at, len(data))
}

// readAll opens the state and reads everything in it.
func readAll(dir string, exit func(int)) (n int, err error) {
	s, err := Open(context.Background(), dir, Options{Logger: quiet(), exit: exit})
	if err != nil {
		return 0, err
	}
	n, err = wholeBatch(s)
	return n, errors.Join(err, s.Close())
}

// TestI5DamageIsRefused: a state with one wrong byte anywhere is refused with an error that says what to do, or is
// whole all the same. It is never torn, never older than the last clean stop, and ends no process.
//
// The end of a log is the exception that every log has: what is damaged there looks like a write that a crash cut off.
func TestI5DamageIsRefused(t *testing.T) {
	const closed, crashed, flips = 60, 120, 30
	state := crashedState(t, closed, crashed)
	exit := func(int) { t.Error("the process would have ended") }
	for pattern, oldest := range map[string]int{"*.sst": crashed, "MANIFEST-*": crashed, "*.log": closed} {
		t.Run(pattern, func(t *testing.T) {
			refused, older := 0, 0
			for i := range flips {
				dir, what := damagedCopy(t, state, pattern, float64(i)/(flips-1))
				n, err := readAll(dir, exit)
				var damaged *DamagedError
				switch {
				case errors.As(err, &damaged):
					refused++
				case err != nil:
					t.Errorf("%s: %v", what, err)
				case n < oldest:
					t.Errorf("%s: the state says nothing and holds batch %d of %d", what, n, crashed)
				case n < crashed:
					older++
				}
				must(t, os.RemoveAll(dir))
			}
			t.Logf("%d of %d refused, %d with an older batch, the rest whole", refused, flips, older)
			if refused < flips/2 {
				t.Errorf("%d of %d damaged states are refused", refused, flips)
			}
		})
	}
}

func TestI5MissingFilesAreRefused(t *testing.T) {
	state := closedState(t, 120)
	for _, pattern := range []string{"*.sst", "MANIFEST-*", "marker.manifest*", "marker.format*"} {
		dir := filepath.Join(t.TempDir(), "state")
		must(t, os.CopyFS(dir, os.DirFS(state)))
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		must(t, err)
		must(t, os.Remove(files[0]))
		_, err = readAll(dir, func(int) { t.Errorf("without %s the process would have ended", files[0]) })
		var damaged *DamagedError
		if !errors.As(err, &damaged) || !strings.Contains(err.Error(), "exporter checkpoint reset --state-dir "+dir) {
			t.Errorf("without %s: %v", files[0], err)
		}
		must(t, Discard(dir))
		if n, err := readAll(dir, os.Exit); n != 0 || err != nil {
			t.Errorf("after Discard the state holds batch %d, %v", n, err)
		}
	}
}

// TestI5DamageStopsCommits: what the background finds is told by the next commit, which changes nothing.
func TestI5DamageStopsCommits(t *testing.T) {
	s := open(t, t.TempDir())
	must(t, commitNumbered(s, 1))
	s.reportDamage(pebble.DataCorruptionInfo{Path: "000007.sst", Details: pebble.ErrCorruption})
	var damaged *DamagedError
	if err := commitNumbered(s, 2); !errors.As(err, &damaged) || !strings.Contains(err.Error(), "000007.sst") {
		t.Errorf("Commit returns %v", err)
	}
	if n, err := wholeBatch(s); n != 1 || err != nil {
		t.Errorf("the state holds batch %d, %v", n, err)
	}
}

func TestI5BadValuesAreRefused(t *testing.T) {
	s := open(t, t.TempDir())
	bad := []byte{0xf0}
	of := Object{"pods", change.Key{Name: "x"}}
	owed := owe("lake", "pods", change.Requested)
	for _, key := range [][]byte{
		keyOf(tableCluster), keyOf(tablePlace, "out", "pods", Others), rowKey(nil, tableRow, "out", of), rowKey(nil, tableGrave, "lake", of), pendingKey(&owed),
	} {
		must(t, s.db.Set(key, bad, pebble.Sync))
	}
	_, _, err1 := s.Cluster()
	_, err2 := s.LoadSink("out")
	_, err3 := s.LoadSink("lake")
	_, err4 := s.Places()
	var err5 error
	for _, err5 = range s.Select([]string{"out"}, "pods", "", anyObject) {
	}
	_, err6 := s.PendingSnapshots()
	for i, err := range []error{err1, err2, err3, err4, err5, err6} {
		var damaged *DamagedError
		if !errors.As(err, &damaged) {
			t.Errorf("read %d returns %v", i+1, err)
		}
	}
}

func TestAStateOfAnotherFormatIsRefused(t *testing.T) {
	for format, what := range map[string]string{
		"7": "a newer version of exporter (format 7, this one knows 2): use that version, or another state.dir",
		"1": "an earlier version of exporter (format 1, this one knows 2): use that version, or give the state up with: " +
			"exporter checkpoint reset --state-dir ",
	} {
		dir := t.TempDir()
		s := open(t, dir)
		must(t, s.db.Set(keyOf(tableFormat), []byte(format), pebble.Sync))
		must(t, s.Close())
		_, err := Open(context.Background(), dir, Options{Logger: quiet()})
		want := "open state " + dir + ": written by " + what
		if format == "1" {
			want += dir
		}
		var refused *FormatError
		if !errors.As(err, &refused) || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
		must(t, Discard(dir))
		open(t, dir)
	}
}

func TestNewerPebbleIsRefused(t *testing.T) {
	dir := closedState(t, 1)
	markers, err := filepath.Glob(filepath.Join(dir, "marker.format-version.*"))
	must(t, err)
	must(t, os.Rename(markers[0], strings.TrimSuffix(markers[0], filepath.Ext(markers[0]))+".999"))
	_, err = Open(context.Background(), dir, Options{Logger: quiet()})
	var refused *FormatError
	if !errors.As(err, &refused) {
		t.Errorf("error %v, want a FormatError", err)
	}
}

func TestForeignDatabaseIsRefused(t *testing.T) {
	dir := t.TempDir()
	db, err := pebble.Open(dir, &pebble.Options{Logger: &diary{to: quiet()}})
	must(t, err)
	must(t, db.Set([]byte("x"), nil, pebble.Sync))
	must(t, db.Close())
	_, err = Open(context.Background(), dir, Options{Logger: quiet()})
	if err == nil || !strings.Contains(err.Error(), "another program's database") {
		t.Errorf("error %v", err)
	}
}

func TestReadOnlyChangesNothing(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none")
	for _, dir := range []string{missing, t.TempDir()} {
		_, err := Open(context.Background(), dir, Options{Logger: quiet(), ReadOnly: true})
		if !errors.Is(err, ErrNoState) {
			t.Errorf("a missing state opens read-only with %v", err)
		}
	}
	if _, err := os.Stat(missing); !os.IsNotExist(err) {
		t.Error("a read-only open made the directory")
	}
	dir := closedState(t, 120)
	before := listing(t, dir)
	s, err := Open(context.Background(), dir, Options{Logger: slog.Default(), ReadOnly: true, Floor: 1 << 62})
	must(t, err)
	if n, err := wholeBatch(s); n != 120 || err != nil {
		t.Errorf("the state holds batch %d, %v", n, err)
	}
	if err := s.SetCluster(Cluster{}); err == nil {
		t.Error("a read-only state was written to")
	}
	must(t, s.Close())
	if after := listing(t, dir); after != before {
		t.Errorf("files before:\n%s\nafter:\n%s", before, after)
	}
}

func listing(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return strings.Join(names, "\n")
}

func TestUnusableDirectoryIsExplained(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		_, err := Open(context.Background(), dir, Options{Logger: quiet()})
		if want := "open state " + dir + ": not a directory: choose another state.dir"; err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	err := prepareError("/d", &os.PathError{Op: "open", Path: "/d/LOCK.exporter", Err: os.ErrPermission})
	if !strings.HasPrefix(err.Error(), "open state /d: not writable by user ") {
		t.Errorf("error %v", err)
	}
	if os.Getuid() == 0 {
		t.Skip("the superuser may write everywhere")
	}
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o500))
	if _, err := Open(context.Background(), dir, Options{Logger: quiet()}); err == nil || !strings.Contains(err.Error(), "not writable") {
		t.Errorf("error %v", err)
	}
}
