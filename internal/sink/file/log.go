package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kubecdc/kubecdc/internal/disk"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Log is the sink on a file. It starts no goroutine.
type Log struct {
	attempts
	series
	active
	openFile func(path string) (handle, error)
	renamed  bool   // a rotation began: file has its new name, and nothing is at path yet
	kept     *place // the saved mark; nil while none is known
}

var (
	_ sink.Sink   = (*Log)(nil)
	_ sink.Keeper = (*Log)(nil)
)

// Open is sink.Sink's. The last line is cut off if a crash left it without its newline or, after a failure of power,
// with zeros in it: it lies after the mark and was never acknowledged. Where no mark is found, nothing is known of
// the file's lines, and an unfinished one is only ended.
func (l *Log) Open(ctx context.Context, at sink.Opening) error {
	_ = l.release()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("open file %s: %w", l.options.Path, err)
	}
	var lost *sink.LostError
	err := l.run(ctx, "open", func() (err error) {
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
		return nil, l.endLine()
	}
	place, ok := parsePlace(saved)
	if !ok {
		return l.lost(string(saved), 0), l.endLine()
	}
	start, err := l.locate(place, rotated)
	if errors.Is(err, errNoPlace) {
		return l.lost(place.String(), place.Offset), l.endLine()
	}
	if err != nil {
		return nil, err
	}
	return nil, l.readBack(start, rotated, behind())
}

// attach opens and locks the active file, made if need be, and makes its name durable.
func (l *Log) attach() error {
	l.resolve(l.options.Path)
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
			if err := l.run(ctx, "rotate", l.tryRotate); err != nil {
				return "", err
			}
			continue
		}
		if err := l.run(ctx, "write to", func() error { return l.tryAppend("", batch[:n]) }); err != nil {
			return "", err
		}
		batch = batch[n:]
	}
	return l.mark()
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
	l.active, l.renamed = active{buf: l.buf}, false
	return err
}
