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

// settle makes what was read back durable: the process that wrote it may have died before its fsync, and the ids
// count as acknowledged once Open returned them (I1). If that fails, nothing behind the mark can be trusted, and all
// of it is cut, to be delivered again.
func (l *Log) settle(trusted int64) error {
	err := l.file.Sync()
	if err == nil {
		return nil
	}
	l.size, l.dirty = trusted, true
	return errors.Join(err, l.cut())
}
