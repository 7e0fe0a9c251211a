package file

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

// opened is a log that is open at the mark, and what was found there.
func opened(t *testing.T, o Options, mark sink.Mark) (*Log, []string, error) {
	t.Helper()
	l := newTestLog(t, o, nil)
	ids, err := sinktest.Open(t.Context(), l, mark)
	return l, ids, err
}

// openAt returns the ids that the sink finds after the mark.
func openAt(t testing.TB, s sink.Sink, mark sink.Mark) []string {
	t.Helper()
	ids, err := sinktest.Open(t.Context(), s, mark)
	must(t, err)
	return ids
}

func mustOpen(t *testing.T, o Options, mark sink.Mark) (*Log, []string) {
	t.Helper()
	l, ids, err := opened(t, o, mark)
	must(t, err)
	return l, ids
}

func mustWrite(t *testing.T, l *Log, batch []sink.Message) sink.Mark {
	t.Helper()
	mark, err := l.Write(t.Context(), batch)
	must(t, err)
	return mark
}

func mustClose(t *testing.T, l *Log) {
	t.Helper()
	must(t, l.Close(t.Context()))
}

// batchOf has the first messages of a maker.
func batchOf(n int) []sink.Message {
	maker := sinktest.Maker{}
	return maker.Batch(n)
}

func idsOf(batch []sink.Message) []string {
	ids := make([]string, len(batch))
	for i := range batch {
		ids[i] = batch[i].ID
	}
	return ids
}

func pathIn(t *testing.T) Options {
	return Options{Path: filepath.Join(t.TempDir(), "changes.ndjson")}
}

// The last line is torn at each of its bytes, once as a kill leaves it and once as a power failure may: with zeros.
func TestI1TornTailIsCutAndWrittenAgain(t *testing.T) {
	o := pathIn(t)
	l, _ := mustOpen(t, o, "")
	batch := batchOf(3)
	marks := []sink.Mark{mustWrite(t, l, nil), mustWrite(t, l, batch[:1])}
	mustWrite(t, l, batch[1:])
	mustClose(t, l)
	whole := read(t, o.Path)
	last := len(linesOf(batch[:2]))
	for size := last; size < len(whole); size++ {
		for i, torn := range [][]byte{
			whole[:size],
			append(slices.Clone(whole[:size]), make([]byte, len(whole)-size)...),
			append(append(slices.Clone(whole[:size]), make([]byte, 5)...), "\n{}\n"...),
		} {
			must(t, os.WriteFile(o.Path, torn, 0o600))
			l, ids := mustOpen(t, o, marks[i%2])
			if want := idsOf(batch[i%2 : 2]); !slices.Equal(ids, want) {
				t.Fatalf("torn at byte %d: found %q, want %q", size-last, ids, want)
			}
			mustWrite(t, l, batch[2:])
			mustClose(t, l)
			if got := read(t, o.Path); !bytes.Equal(got, whole) {
				t.Fatalf("torn at byte %d: the file is now %q", size-last, got)
			}
		}
	}
}

func TestI4EveryLossBeforeTheMarkIsTold(t *testing.T) {
	o := pathIn(t)
	maker := sinktest.Maker{}
	l, _ := mustOpen(t, o, "")
	batch := maker.Batch(40)
	mark := mustWrite(t, l, batch)
	mustClose(t, l)
	whole := read(t, o.Path)
	damaged := map[string][]byte{
		"empty":                        {},
		"a byte short":                 whole[:len(whole)-1],
		"another begin":                append([]byte("#"), whole[1:]...),
		"another end":                  append(slices.Clone(whole[:len(whole)-2]), "#\n"...),
		"another file that is longer":  bytes.Repeat([]byte("{}\n"), len(whole)),
		"the same lines behind others": append([]byte("{}\n"), whole...),
	}
	for name, content := range damaged {
		t.Run(name, func(t *testing.T) {
			must(t, os.WriteFile(o.Path, content, 0o600))
			l, ids, err := opened(t, o, mark)
			var lost *sink.LostError
			if !errors.As(err, &lost) || len(ids) > 0 {
				t.Fatalf("got %q, %v, want a LostError", ids, err)
			}
			if !strings.Contains(err.Error(), o.Path) {
				t.Fatalf("the error does not name the file: %v", err)
			}
			next := maker.Batch(2)
			mustWrite(t, l, next)
			if got := read(t, o.Path); !bytes.HasPrefix(got, content) || !bytes.HasSuffix(got, linesOf(next)) {
				t.Fatalf("what was there was changed: %.200q", got)
			}
		})
	}
}

func TestI4MarkOfAnotherSinkIsALostLog(t *testing.T) {
	for _, mark := range []sink.Mark{"stdout", "{}", `{"offset":-1,"sum":"00000000"}`, `{"offset":1e99}`, "[7]"} {
		_, _, err := opened(t, pathIn(t), mark)
		var lost *sink.LostError
		if !errors.As(err, &lost) || lost.Want != string(mark) {
			t.Errorf("mark %s: got %v, want a LostError", mark, err)
		}
	}
}

func TestI1OtherFormatsAreNotRecognised(t *testing.T) {
	o := pathIn(t)
	l, _ := mustOpen(t, o, "")
	mark := mustWrite(t, l, nil)
	ours := batchOf(1)
	mustWrite(t, l, []sink.Message{
		{Value: []byte(`{"op":"c","after":{"id":"` + ours[0].ID + `"}}`)}, {Value: []byte(`{"id":7}`)}, {Value: []byte(`[]`)},
		{Value: []byte(`{"id":"someone else's"}`)}, {Value: []byte(`{"id":null,"id":"x"`)}, {Value: []byte("not JSON")}, ours[0],
	})
	mustClose(t, l)
	if _, ids := mustOpen(t, o, mark); !slices.Equal(ids, idsOf(ours)) {
		t.Fatalf("found %q", ids)
	}
}

func checkPermanent(t *testing.T, err error, want string) {
	t.Helper()
	var permanent *sink.PermanentError
	if !errors.As(err, &permanent) || err.Error() != want {
		t.Fatalf("got %v, want the PermanentError %q", err, want)
	}
}

// TestOpenSaysWhatToDo, and so does Check, for whoever tries that first.
func TestOpenSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	pipe, loop := filepath.Join(dir, "pipe"), filepath.Join(dir, "loop")
	must(t, errors.Join(unix.Mkfifo(pipe, 0o600), os.Symlink(loop, loop)))
	appendTo(t, filepath.Join(dir, "file"), "")
	for path, want := range map[string]string{
		dir:                             "is a directory: name a file in the directory",
		filepath.Join(dir, "none", "f"): "no such file or directory: create the directory",
		filepath.Join(dir, "file", "f"): "not a directory: create the directory",
		pipe:                            "not a regular file: name a file, or \"-\" for standard output",
		loop:                            "too many levels of symbolic links: choose another path",
		// Even root may not write here.
		"/proc/sys/kernel/osrelease":         "permission denied: let the exporter's user read and write the file and its directory",
		dir + "/" + strings.Repeat("n", 999): "file name too long: choose another path",
	} {
		_, _, err := opened(t, Options{Path: path}, "")
		checkPermanent(t, err, "open file "+path+": "+want)
		verb := "check"
		if path == pipe {
			verb = "open" // what is found when it is opened
		}
		checkPermanent(t, check(t, Options{Path: path}), verb+" file "+path+": "+want)
	}
}

// TestI4FullDiskIsWaitedFor: a disk gets full at each byte of a line, and in any of the pieces of a large batch. A
// reader never sees half a line once the attempt is over, and in the end every line once.
func TestI4FullDiskIsWaitedFor(t *testing.T) {
	small, large := batchOf(2), batchOf(40)
	for i := range large {
		large[i].Value = append(bytes.Repeat([]byte{' '}, chunk/10), large[i].Value...)
	}
	for room := range int64(400) {
		fillDisk(t, room, small[:1], small[1:])
	}
	for room := int64(0); room < int64(len(linesOf(large))); room += chunk / 3 {
		fillDisk(t, room, nil, large)
	}
}

// fillDisk writes two batches, the second to a disk that has room for so many bytes of it until an attempt fails.
func fillDisk(t *testing.T, room int64, first, second []sink.Message) {
	t.Helper()
	o, d := pathIn(t), &testDisk{}
	var reasons []string
	var torn int64
	o.Retry = func(reason string, err error) {
		reasons = append(reasons, reason)
		torn = max(torn, sizeOf(t, o.Path)-int64(len(linesOf(first))))
		if !errors.Is(err, unix.ENOSPC) {
			t.Errorf("told of %v", err)
		}
		d.full.Store(false)
	}
	l := newTestLog(t, o, d)
	openAt(t, l, "")
	mustWrite(t, l, first)
	d.room.Store(room)
	d.full.Store(true)
	mustWrite(t, l, second)
	mustClose(t, l)
	if got := read(t, o.Path); !bytes.Equal(got, linesOf(slices.Concat(first, second))) {
		t.Fatalf("with room for %d bytes the file has %d bytes: %.200q", room, len(got), got)
	}
	if !slices.Equal(reasons, []string{"disk_full"}) || torn != 0 {
		t.Fatalf("told %q, a reader saw %d bytes of what was not written", reasons, torn)
	}
}

// TestI4AFileThatIsCutWhileTheDiskIsFullIsLost: somebody makes room by it. To cut it back to its durable length would
// fill it with zeros, which look like nothing lost.
func TestI4AFileThatIsCutWhileTheDiskIsFullIsLost(t *testing.T) {
	o, d, batch := pathIn(t), &testDisk{}, batchOf(4)
	tries := 0
	o.Retry = func(string, error) {
		if tries++; tries == 1 {
			truncateTo(t, o.Path, 0)
			return
		}
		d.full.Store(false)
	}
	l := newTestLog(t, o, d)
	openAt(t, l, "")
	mark := mustWrite(t, l, batch[:2])
	d.room.Store(10)
	d.full.Store(true)
	if _, err := l.Write(t.Context(), batch[2:]); err == nil {
		t.Error("the next attempt goes on")
	}
	if _, err := sinktest.Open(t.Context(), l, mark); !errors.As(err, new(*sink.LostError)) {
		t.Errorf("the next open: got %v", err)
	}
}

// After a failed fsync the kernel may have dropped what it did not write, and the next fsync succeeds without it.
func TestI1FailedSyncWritesAnew(t *testing.T) {
	o := pathIn(t)
	fails := map[string]int{}
	l := newTestLog(t, o, &testDisk{fails: fails})
	openAt(t, l, "")
	batch := batchOf(3)
	mustWrite(t, l, batch[:1])
	fails["sync"], fails["truncate"] = 3, 2
	var sizes []int64
	l.options.Retry = func(string, error) { sizes = append(sizes, sizeOf(t, o.Path)-l.size) }
	mustWrite(t, l, batch[1:])
	if got := read(t, o.Path); !bytes.Equal(got, linesOf(batch)) {
		t.Fatalf("the file is %q", got)
	}
	if lines := int64(len(linesOf(batch[1:]))); !slices.Equal(sizes, []int64{lines, lines, 0, 0}) {
		t.Fatalf("beyond what is durable the file had %d bytes", sizes)
	}
}

// What Open reports counts as acknowledged, so it must not report what only the page cache holds.
func TestI1OpenReportsNothingThatItCannotSync(t *testing.T) {
	o := pathIn(t)
	batch := batchOf(3)
	first, _ := mustOpen(t, o, "")
	mark := mustWrite(t, first, batch[:1])
	mustWrite(t, first, batch[1:])
	mustClose(t, first)
	l := newTestLog(t, o, &testDisk{fails: map[string]int{"sync": 1}})
	if ids := openAt(t, l, mark); len(ids) > 0 {
		t.Fatalf("found %q", ids)
	}
	if got := read(t, o.Path); !bytes.Equal(got, linesOf(batch[:1])) {
		t.Fatalf("the file is %q", got)
	}
}

func TestI4OtherHandOnTheFileIsNoticed(t *testing.T) {
	hands := map[string]func(t *testing.T, path string){
		"appends":  func(t *testing.T, path string) { appendTo(t, path, "{}\n") },
		"removes":  func(t *testing.T, path string) { remove(t, path) },
		"replaces": func(t *testing.T, path string) { replace(t, path) },
	}
	for name, hand := range hands {
		t.Run(name, func(t *testing.T) {
			o := pathIn(t)
			maker := sinktest.Maker{}
			l, _ := mustOpen(t, o, "")
			mark := mustWrite(t, l, maker.Batch(3))
			hand(t, o.Path)
			var permanent *sink.PermanentError
			if _, err := l.Write(t.Context(), maker.Batch(1)); err == nil || errors.As(err, &permanent) {
				t.Fatalf("got %v, want an error that Open answers", err)
			}
			ids, err := sinktest.Open(t.Context(), l, mark)
			var lost *sink.LostError
			if errors.As(err, &lost) != (name == "removes") || len(ids) > 0 {
				t.Fatalf("found %q, %v", ids, err)
			}
			mustWrite(t, l, maker.Batch(1))
		})
	}
}

// replace puts a copy in the file's place, as editors and backups do.
func replace(t *testing.T, path string) {
	t.Helper()
	appendTo(t, path+".copy", string(read(t, path)))
	must(t, os.Rename(path+".copy", path))
}

func TestWriteNeedsOpen(t *testing.T) {
	for _, path := range []string{filepath.Join(t.TempDir(), "f"), Stdout} {
		s := New(Options{Path: path, Stdout: io.Discard})
		if _, err := s.Write(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "open the sink first") {
			t.Errorf("%s: got %v", path, err)
		}
	}
}
