package file

import (
	"errors"
	"io"
	"os"
)

// readBack reads from the start to the end of the active file, which it leaves whole and durable.
func (l *Log) readBack(from start, rotated []string, found func(id string)) error {
	offset := from.offset
	for _, name := range rotated[from.file:] {
		if err := l.readRotated(name, offset, found); err != nil {
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

// readRotated reads a file that was durable and whole before it got its name.
func (l *Log) readRotated(name string, offset int64, found func(id string)) error {
	f, err := os.Open(l.sibling(name))
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	_, err = readLines(f, found)
	return err
}

// locate finds the file of the place, the active one first. It returns errNoPlace if none has it.
func (l *Log) locate(p place, rotated []string) (start, error) {
	if p.Offset == 0 {
		first := 0
		for first < len(rotated) && rotated[first] <= p.After {
			first++
		}
		return start{file: first}, nil
	}
	if ok, err := holds(l.file, p); ok || err != nil {
		return start{len(rotated), p.Offset}, err
	}
	for i := len(rotated) - 1; i >= 0; i-- {
		if ok, err := l.rotatedHolds(rotated[i], p); ok || err != nil {
			return start{i, p.Offset}, err
		}
	}
	return start{}, errNoPlace
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
