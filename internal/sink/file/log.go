package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kubecdc/kubecdc/internal/disk"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// chunk is how many bytes go into one write call, and a line more: so few are in the processor's cache still when the
// kernel copies them, and a batch costs no memory of its own size. Behind every call that takes long, Go's monitor of
// blocked threads wakes some fifty times; with a quarter of the size that cost a tenth of all CPU time of a snapshot.
const chunk = 512 << 10

// keepLine bounds what a rare giant line leaves allocated.
const keepLine = 1 << 20

// Log is the sink on a file. It starts no goroutine.
type Log struct {
	options  Options
	openFile func(path string) (handle, error)
	now      func() time.Time
	// firstWait is the pause before the first repetition.
	firstWait time.Duration

	path    string // options.Path without symbolic links, so that a rotation renames the file and not the link
	file    handle // the active file, locked; nil while the sink is not open
	size    int64  // of the active file: all of it durable, unless dirty
	dirty   bool   // the active file may be longer than size
	newest  string // the name of the newest rotated file, "" if there never was one
	renamed bool   // a rotation began: file has its new name, and nothing is at path yet
	kept    *place // the saved mark; nil while none is known
	buf     []byte
}

var (
	_ sink.Sink   = (*Log)(nil)
	_ sink.Keeper = (*Log)(nil)
)

// Open is sink.Sink's. The last line is cut off if a crash left it without its newline or, after a failure of power,
// with zeros in it: it lies behind the mark and was never acknowledged. Where no mark is found, nothing is known of
// the file's lines, and an unfinished one is only ended.
func (l *Log) Open(ctx context.Context, at sink.Opening) error {
	_ = l.release()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("open file %s: %w", l.options.Path, err)
	}
	var lost *sink.LostError
	err := l.retry(ctx, "open", func() (err error) {
		_ = l.release()
		lost, err = l.open(at.Mark, at.Behind)
		return err
	})
	if err != nil {
		_ = l.release()
		return err
	}
	if lost != nil {
		return lost
	}
	return nil
}

func (l *Log) open(saved sink.Mark, behind sink.Tail) (*sink.LostError, error) {
	if err := l.attach(); err != nil {
		return nil, err
	}
	rotated, err := l.rotated()
	if err != nil {
		return nil, err
	}
	if saved == "" {
		return nil, l.openAtEnd()
	}
	place, ok := parsePlace(saved)
	if !ok {
		return l.lost(string(saved), 0), l.openAtEnd()
	}
	start, err := l.locate(place, rotated)
	if errors.Is(err, errNoPlace) {
		return l.lost(place.String(), place.Offset), l.openAtEnd()
	}
	if err != nil {
		return nil, err
	}
	return nil, l.readBack(start, rotated, behind())
}

// attach opens and locks the active file, made if need be, and makes its name durable.
func (l *Log) attach() error {
	l.path = l.options.Path
	if real, err := filepath.EvalSymlinks(l.path); err == nil {
		l.path = real
	}
	file, err := l.openLocked()
	if err != nil {
		return err
	}
	l.file = file
	info, err := file.Stat()
	if err != nil {
		return err
	}
	l.size = info.Size()
	return disk.SyncDir(filepath.Dir(l.path))
}

func (l *Log) lost(want string, offset int64) *sink.LostError {
	have := fmt.Sprintf("byte %d", l.size)
	if l.size >= offset {
		have += " of another file"
	}
	return &sink.LostError{Log: "file " + l.options.Path, Want: want, Have: have}
}

// openAtEnd ends an unfinished last line, which is not ours to cut.
func (l *Log) openAtEnd() error {
	if l.size == 0 {
		return nil
	}
	var last [1]byte
	if _, err := l.file.ReadAt(last[:], l.size-1); err != nil {
		return err
	}
	if last[0] == '\n' {
		return nil
	}
	return l.tryAppend("\n", nil)
}

// Write is sink.Sink's: the lines of a batch cost one fsync for each file that they fall into.
func (l *Log) Write(ctx context.Context, batch []sink.Message) (sink.Mark, error) {
	if l.file == nil {
		return "", fmt.Errorf("write to file %s: it is not open: open the sink first", l.options.Path)
	}
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("write to file %s: %w", l.options.Path, err)
	}
	if err := l.undisturbed(); err != nil {
		return "", err
	}
	for len(batch) > 0 {
		n := l.fitting(batch)
		if n == 0 {
			if err := l.retry(ctx, "rotate", l.tryRotate); err != nil {
				return "", err
			}
			continue
		}
		if err := l.retry(ctx, "write to", func() error { return l.tryAppend("", batch[:n]) }); err != nil {
			return "", err
		}
		batch = batch[n:]
	}
	return l.mark()
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
	if here.Size() != l.size && !l.dirty {
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

// tryAppend writes the head and the batch's lines behind what is durable, and takes back what it cannot finish. A
// failed fsync is no different: the kernel may have dropped the pages and would call the next fsync a success, so they
// are written anew.
func (l *Log) tryAppend(head string, batch []sink.Message) error {
	if err := l.cut(); err != nil {
		return err
	}
	written, err := l.writeLines(head, batch)
	if err == nil && written > 0 {
		err = l.file.Sync() // I1
	}
	if err != nil {
		// If that fails too, the next attempt or Open does it.
		return errors.Join(err, l.cut())
	}
	l.dirty = false
	l.size += written
	return nil
}

// writeLines writes the head and the lines, and returns how many bytes that was. Between its write calls the file ends
// with a whole line.
func (l *Log) writeLines(head string, batch []sink.Message) (written int64, err error) {
	l.buf = append(l.buf[:0], head...)
	for i := 0; i < len(batch) && err == nil; i++ {
		if l.buf = appendLine(l.buf, batch[i].Value); len(l.buf) >= chunk {
			written += int64(len(l.buf))
			err = l.flush()
		}
	}
	if err != nil {
		return 0, err
	}
	written += int64(len(l.buf))
	return written, l.flush()
}

// flush writes the buffer.
func (l *Log) flush() error {
	if len(l.buf) == 0 {
		return nil
	}
	l.dirty = true
	_, err := l.file.Write(l.buf)
	l.buf = l.buf[:0]
	if cap(l.buf) > keepLine {
		l.buf = nil
	}
	return err
}

// cut takes the file back to its durable length.
func (l *Log) cut() error {
	if !l.dirty {
		return nil
	}
	if err := l.file.Truncate(l.size); err != nil {
		return err
	}
	l.dirty = false
	return nil
}

// Close is sink.Sink's.
func (l *Log) Close(context.Context) error {
	if l.file == nil {
		return nil
	}
	if err := l.release(); err != nil {
		return fmt.Errorf("close file %s: %w", l.options.Path, err)
	}
	return nil
}

// release gives the lock back with the file. What was acknowledged is durable already.
func (l *Log) release() error {
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file, l.size, l.dirty, l.renamed = nil, 0, false, false
	return err
}
