package file

import (
	"errors"
	"io"
	"os"

	"github.com/kubecdc/kubecdc/internal/sink"
)

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
