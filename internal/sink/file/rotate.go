package file

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/kubecdc/kubecdc/internal/disk"
	"github.com/kubecdc/kubecdc/internal/sink"
)

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
	next, err := l.openLocked()
	if err != nil {
		return err
	}
	info, err := next.Stat()
	if err == nil {
		err = disk.SyncDir(filepath.Dir(l.path))
	}
	if err != nil {
		return errors.Join(err, next.Close())
	}
	// The new file is locked before the old one's lock is given back (I10). The old one has nothing left to lose.
	_ = l.file.Close()
	l.file, l.size, l.renamed = next, info.Size(), false
	l.retain()
	return nil
}

// Keep is sink.Keeper's.
func (l *Log) Keep(saved sink.Mark) {
	if p, ok := parsePlace(saved); ok {
		l.kept = &p
	}
}

// needless are the old ones of the rotated files, as far as they lie before the saved mark. Where no file has that any
// more it protects none.
func (l *Log) needless(old int, rotated []string) ([]string, error) {
	if l.kept == nil || old == 0 {
		return rotated[:old], nil
	}
	at, err := l.locate(*l.kept, rotated)
	switch {
	case errors.Is(err, errNoPlace):
		return rotated[:old], nil
	case err != nil:
		return nil, err
	}
	return rotated[:min(old, at.file)], nil
}

// retain deletes the oldest files, as far as nobody will ask for them. What fails is tried again after the next
// rotation, and stops nothing.
func (l *Log) retain() {
	if l.options.Keep == 0 {
		return
	}
	names, err := l.rotated()
	if err == nil {
		names, err = l.needless(max(0, len(names)-l.options.Keep), names)
	}
	if err != nil {
		l.options.Retry("retention", err)
		return
	}
	for _, name := range names {
		if at, _ := l.rotatedAt(name); l.now().Sub(at) < young {
			return
		}
		if err := os.Remove(l.sibling(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			l.options.Retry("retention", err)
		}
	}
}
