package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

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
	_ = l.release() // nothing is written to that file any more
	var lost *sink.LostError
	err := l.run(ctx, "open", func() (err error) {
		_ = l.release() // of the attempt before
		lost, err = l.open(at.Mark, at.After)
		return err
	})
	if err != nil {
		return errors.Join(err, l.release())
	}
	if lost != nil {
		return lost
	}
	return nil
}

func (l *Log) open(saved sink.Mark, tail sink.Tail) (_ *sink.LostError, err error) {
	l.resolve(l.options.Path)
	if l.file, l.size, err = l.openLocked(); err != nil {
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
	file, err := l.locate(place, rotated)
	if errors.Is(err, errNoPlace) {
		return l.lost(place.String(), place.Offset), l.endLine()
	}
	if err != nil {
		return nil, err
	}
	return nil, l.readBack(place.Offset, rotated[file:], tail())
}

// Write is sink.Sink's: the lines of a batch cost one fsync for each file that they fall into.
func (l *Log) Write(ctx context.Context, batch []sink.Message) (sink.Mark, error) {
	if l.file == nil {
		return "", fmt.Errorf("write to file %s: it is not open: open the sink first", l.options.Path)
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
		var disturbed error
		isAgain := false
		err := l.run(ctx, "write to", func() error {
			if isAgain { // somebody who made room may have cut the file
				disturbed = l.undisturbed()
			}
			if isAgain = true; disturbed != nil {
				return nil
			}
			return l.tryAppend("", batch[:n])
		})
		if err = errors.Join(err, disturbed); err != nil {
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

// young is the age below which a rotated file is not deleted. Checkpoints are seconds apart, and a saved mark in a
// file that is gone would be a lost log.
const young = time.Minute

// tryRotate gives the active file, all of which is durable, its last name and begins a new one. It goes on where a
// failed attempt stopped; a crash in between leaves no active file, and Open makes one.
func (l *Log) tryRotate() error {
	if !l.renamed {
		name := l.nextName()
		if err := os.Rename(l.path, l.sibling(name)); err != nil {
			return err
		}
		l.renamed, l.newest = true, name
	}
	next, size, err := l.openLocked()
	if err != nil {
		return err
	}
	// The new file is locked before the old one's lock is given back (I10).
	_ = l.file.Close() // it has nothing left to lose
	l.file, l.size, l.renamed = next, size, false
	l.retain()
	return nil
}

// Keep is sink.Keeper's.
func (l *Log) Keep(saved sink.Mark) {
	if p, ok := parsePlace(saved); ok {
		l.kept = &p
	}
}

// retain deletes the oldest files, as far as they lie before the saved mark: nobody will ask for them. Where no file
// has that mark any more it protects none. What fails is tried again after the next rotation, and stops nothing.
func (l *Log) retain() {
	if l.options.Keep == 0 {
		return
	}
	names, err := l.rotated()
	old := max(0, len(names)-l.options.Keep)
	if old > 0 && l.kept != nil {
		file, missing := l.locate(*l.kept, names)
		if err = missing; err == nil {
			old = min(old, file)
		}
	}
	if err != nil && !errors.Is(err, errNoPlace) {
		l.options.Retry("retention", err)
		return
	}
	for _, name := range names[:old] {
		if at, _ := l.rotatedAt(name); l.now().Sub(at) < young {
			return
		}
		if err := os.Remove(l.sibling(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			l.options.Retry("retention", err)
		}
	}
}

// Check says why the file could not be opened for writing, and changes nothing: a file that is missing stays missing.
// A file that is there is locked for the moment of the look. The note is never used.
func (l *Log) Check(context.Context) (note string, err error) {
	l.resolve(l.options.Path)
	err = l.writable()
	if errors.Is(err, os.ErrNotExist) {
		err = l.creatable()
	}
	switch {
	case err == nil:
		return "", nil
	case passes(err): // by itself, perhaps
		return "", sink.Permanent("check %s: %w: check the disk and the path", l.options.noun(), cause(err))
	}
	return "", l.explain("check", err)
}

// writable looks at a file that exists.
func (l *Log) writable() error {
	if err := l.regular(); err != nil {
		return err
	}
	f, err := os.OpenFile(l.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if l.options.MaxBytes > 0 { // a rotation renames it
		err = unix.Access(filepath.Dir(l.path), unix.W_OK|unix.X_OK)
	}
	return errors.Join(err, l.lock(f), f.Close())
}

// creatable looks at the directory of a file that does not exist.
func (l *Log) creatable() error {
	dir := filepath.Dir(l.path)
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return unix.ENOTDIR
	}
	return unix.Access(dir, unix.R_OK|unix.W_OK|unix.X_OK)
}
