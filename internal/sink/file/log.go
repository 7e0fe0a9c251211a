package file

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubecdc/kubecdc/internal/checkpoint/disk"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// New returns a sink that is not open.
func New(o Options) sink.Sink {
	if o.Retry == nil {
		o.Retry = func(string, error) {}
	}
	if o.Stdout == nil {
		o.Stdout = os.Stdout
	}
	attempts := attempts{o, 100 * time.Millisecond}
	if o.Path == Stdout {
		return &Stream{attempts: attempts}
	}
	return &Log{attempts: attempts, series: series{o.Path, "", time.Now}, openFile: openFile}
}

// openLocked opens the file at path, made if need be, as the only process that does (I10), and makes its name durable.
// The lock ends with the process.
func (l *Log) openLocked() (f handle, size int64, err error) {
	for {
		if err := l.regular(); err != nil {
			return nil, 0, err
		}
		if f, err = l.openFile(l.path); err != nil {
			return nil, 0, err
		}
		same := false
		if err = l.lock(f); err == nil {
			same, size, err = l.at(f)
		}
		if err == nil && same {
			err = disk.SyncDir(filepath.Dir(l.path))
		}
		if err == nil && same {
			return f, size, nil
		}
		// Its owner renamed the file between our opening and our locking it, and let it go. What is at path now is
		// another file.
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, 0, err
		}
	}
}

// regular refuses what cannot be a log before opening does something to it, such as waiting for a reader.
func (l *Log) regular() error {
	info, err := os.Stat(l.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return unix.EISDIR
	case !info.Mode().IsRegular():
		return sink.Permanent("open file %s: not a regular file: name a file, or %q for standard output",
			l.options.Path, Stdout)
	}
	return nil
}

func (l *Log) lock(f handle) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return &sink.PermanentError{Err: &InUseError{l.options.Path}}
	case err != nil:
		return sink.Permanent("open file %s: lock: %w: put the file on a file system that has locks", l.options.Path, err)
	}
	return nil
}

// at says whether the file is the one at path, and how long it is.
func (l *Log) at(f handle) (same bool, size int64, err error) {
	ours, err := f.Stat()
	if err != nil {
		return false, 0, err
	}
	here, err := os.Stat(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return false, 0, nil
	}
	return err == nil && os.SameFile(ours, here), ours.Size(), err
}

// readBack reads from the offset in the first of the rotated files, or in the active one where there are none, to the
// end of the active one, which it leaves whole and durable.
func (l *Log) readBack(offset int64, rotated []string, found func(id string)) error {
	for _, name := range rotated { // each was durable and whole before it got its name
		f, err := os.Open(l.sibling(name))
		if err != nil {
			return err
		}
		_, err = readLines(io.NewSectionReader(f, offset, 1<<62), found)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		offset = 0
	}
	length, err := readLines(io.NewSectionReader(l.file, offset, l.size-offset), found)
	if err != nil {
		return err
	}
	l.dirty = offset+length < l.size
	l.size = offset + length
	if err := l.cut(); err != nil {
		return err
	}
	return l.settle(offset)
}

// locate finds the file of the place, the active one first: its index in the rotated files, or their number. It returns
// errNoPlace if none has it.
func (l *Log) locate(p place, rotated []string) (file int, err error) {
	if p.Offset == 0 {
		for file < len(rotated) && rotated[file] <= p.After {
			file++
		}
		return file, nil
	}
	if ok, err := holds(l.file, p); ok || err != nil {
		return len(rotated), err
	}
	for i, name := range slices.Backward(rotated) {
		if ok, err := l.rotatedHolds(name, p); ok || err != nil {
			return i, err
		}
	}
	return 0, errNoPlace
}

func (l *Log) rotatedHolds(name string, p place) (bool, error) {
	f, err := os.Open(l.sibling(name))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil // somebody takes rotated files away
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	return holds(f, p)
}

// Log is the sink on a file. It starts no goroutine.
type Log struct {
	attempts
	series
	active
	openFile func(path string) (handle, error)
	renamed  bool   // a rotation began: file has its new name, and nothing is at path yet
	kept     *place // the saved mark; nil while none is known
}

func (l *Log) lost(want string, offset int64) *sink.LostError {
	have := fmt.Sprintf("byte %d", l.size)
	if l.size >= offset {
		have += " of another file"
	}
	return &sink.LostError{Log: "file " + l.options.Path, Want: want, Have: have}
}

// mark is the place at the end of what is durable.
func (l *Log) mark() (sink.Mark, error) {
	sum, err := sumAt(l.file, l.size)
	if err != nil {
		return "", fmt.Errorf("read back file %s: %w", l.options.Path, err)
	}
	text, err := json.Marshal(place{Offset: l.size, Sum: sum, After: l.newest})
	return sink.Mark(text), err
}

// undisturbed notices another hand on the file before a batch goes into a file that nobody will find.
func (l *Log) undisturbed() error {
	here, err := os.Stat(l.path)
	if err != nil {
		return fmt.Errorf("write to file %s: it was taken away: %w", l.options.Path, err)
	}
	ours, err := l.file.Stat()
	if err != nil {
		return fmt.Errorf("write to file %s: %w", l.options.Path, err)
	}
	if !os.SameFile(here, ours) {
		return fmt.Errorf("write to file %s: it was replaced by another file: leave its rotation to kubecdc", l.options.Path)
	}
	if here.Size() != l.size && !l.dirty || here.Size() < l.size {
		return fmt.Errorf("write to file %s: it has %d bytes, not the %d that were written: leave it to kubecdc alone",
			l.options.Path, here.Size(), l.size)
	}
	return nil
}

// fitting is how many of the messages the active file has room for.
func (l *Log) fitting(batch []sink.Message) int {
	if l.options.MaxBytes == 0 {
		return len(batch)
	}
	end := l.size
	for i := range batch {
		if len(batch[i].Value) == 0 {
			continue
		}
		line := int64(len(batch[i].Value)) + 1
		if end > 0 && end+line > l.options.MaxBytes {
			return i
		}
		end += line
	}
	return len(batch)
}

// release gives the lock back with the file. What was acknowledged is durable already.
func (l *Log) release() error {
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.active, l.renamed = active{buf: l.buf}, false
	return err
}

// chunk is how many bytes go into one write call, and a line more: so few are in the processor's cache still when the
// kernel copies them, and a batch costs no memory of its own size. After every call that takes long, Go's monitor of
// blocked threads wakes some fifty times; with a quarter of the size that cost a tenth of all CPU time of a snapshot.
const chunk = 512 << 10

// keepLine bounds what a rare giant line leaves allocated.
const keepLine = 1 << 20

// active is the file that is appended to, locked.
type active struct {
	file  handle // nil while the sink is not open
	size  int64  // all of it durable, unless dirty
	dirty bool   // it may be longer than size
	buf   []byte
}

// handle is what the sink needs of an *os.File; tests put a full disk behind it.
type handle interface {
	io.WriteCloser
	io.ReaderAt
	Stat() (os.FileInfo, error)
	Sync() error
	Truncate(size int64) error
	Fd() uintptr
}

// openFile makes a file that the group may read: log shippers do, and the world need not know a cluster's objects.
func openFile(path string) (handle, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o640)
	if err != nil {
		return nil, err // not f: a nil *os.File would make a handle that is not nil
	}
	return f, nil
}

// endLine ends an unfinished last line, which is not ours to cut.
func (a *active) endLine() error {
	if a.size == 0 {
		return nil
	}
	var last [1]byte
	if _, err := a.file.ReadAt(last[:], a.size-1); err != nil {
		return err
	}
	if last[0] == '\n' {
		return nil
	}
	return a.tryAppend("\n", nil)
}

// tryAppend writes the head and the batch's lines after what is durable, and takes back what it cannot finish. A
// failed fsync is no different: the kernel may have dropped the pages and would call the next fsync a success, so they
// are written anew.
func (a *active) tryAppend(head string, batch []sink.Message) error {
	if err := a.cut(); err != nil {
		return err
	}
	written, err := a.writeLines(head, batch)
	if err == nil && written > 0 {
		err = a.file.Sync() // I1
	}
	if err != nil {
		// If that fails too, the next attempt or Open does it.
		return errors.Join(err, a.cut())
	}
	a.dirty = false
	a.size += written
	return nil
}

// writeLines writes the head and the lines, and returns how many bytes that was. Between its write calls the file ends
// with a whole line.
func (a *active) writeLines(head string, batch []sink.Message) (written int64, err error) {
	a.buf = append(a.buf[:0], head...)
	for i := 0; i < len(batch) && err == nil; i++ {
		if a.buf = appendLine(a.buf, batch[i].Value); len(a.buf) >= chunk {
			written += int64(len(a.buf))
			err = a.flush()
		}
	}
	if err != nil {
		return 0, err
	}
	written += int64(len(a.buf))
	return written, a.flush()
}

// flush writes the buffer.
func (a *active) flush() error {
	if len(a.buf) == 0 {
		return nil
	}
	a.dirty = true
	_, err := a.file.Write(a.buf)
	a.buf = a.buf[:0]
	if cap(a.buf) > keepLine {
		a.buf = nil
	}
	return err
}

// cut takes the file back to its durable length.
func (a *active) cut() error {
	if !a.dirty {
		return nil
	}
	if err := a.file.Truncate(a.size); err != nil {
		return err
	}
	a.dirty = false
	return nil
}

// settle makes what was read back durable: the process that wrote it may have died before its fsync, and the ids
// count as acknowledged once Open returned them (I1). If that fails, nothing after the mark can be trusted, and all
// of it is cut, to be delivered again.
func (a *active) settle(trusted int64) error {
	err := a.file.Sync()
	if err == nil {
		return nil
	}
	a.size, a.dirty = trusted, true
	return errors.Join(err, a.cut())
}

// window is how many bytes at the file's begin and before a place identify it.
const window = 4 << 10

var errNoPlace = errors.New("no file holds the place")

// place is a mark: so many bytes into the file that has these bytes there. It names no file, since a rotation renames
// it, and no inode, since file systems give those to the next file and a restored backup has others.
type place struct {
	Offset int64 `json:"offset"`
	// Sum is the CRC-32C of the file's begin and of what stands before the offset, in hex. Each line has an id or a
	// time that no other has.
	Sum string `json:"sum"`
	// After is the newest rotated file's name when the mark was made, "" if there was none. It finds the file of
	// offset 0, before which there is nothing to sum up.
	After string `json:"after,omitempty"`
}

func (p place) String() string { return fmt.Sprintf("byte %d (sum %s)", p.Offset, p.Sum) }

func parsePlace(saved sink.Mark) (place, bool) {
	var p place
	if err := json.Unmarshal([]byte(saved), &p); err != nil || p.Offset < 0 || p.Sum == "" {
		return place{}, false
	}
	return p, true
}

func sumAt(r io.ReaderAt, offset int64) (string, error) {
	n := min(offset, window)
	bytes := make([]byte, n)
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := uint32(0)
	for _, start := range [...]int64{0, offset - n} {
		if _, err := r.ReadAt(bytes, start); err != nil {
			return "", err
		}
		sum = crc32.Update(sum, table, bytes)
	}
	return fmt.Sprintf("%08x", sum), nil
}

func holds(r io.ReaderAt, p place) (bool, error) {
	sum, err := sumAt(r, p.Offset)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return err == nil && sum == p.Sum, err
}
