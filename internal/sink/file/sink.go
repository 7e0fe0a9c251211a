package file

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/kubecdc/kubecdc/internal/disk"
	"github.com/kubecdc/kubecdc/internal/sink"
)

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
		lost, err = l.open(at.Mark, at.After)
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

func (l *Log) open(saved sink.Mark, tail sink.Tail) (*sink.LostError, error) {
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
	return nil, l.readBack(start, rotated, tail())
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
