package rig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Follower counts the lines of a file that grows, and takes what it has counted out of the page cache. So every run
// finds memory to write to that was just used: in a virtual machine the first use of a page can cost several times as
// much as writing to it, which would be the largest and most fickle part of every figure.
type Follower struct {
	path   string
	file   *os.File
	lines  int
	offset int64 // up to where lines are counted
	kept   int64 // from where on the page cache is left alone
	buf    []byte
}

// Follow follows the file from its present end, or from its begin where it does not exist yet.
func Follow(path string) (*Follower, error) {
	f := &Follower{path: path, buf: make([]byte, 1<<20)}
	if err := f.open(); err != nil {
		return nil, err
	}
	if f.file != nil {
		var err error
		if f.offset, err = f.file.Seek(0, io.SeekEnd); err != nil {
			return nil, fmt.Errorf("follow %s: %w", path, err)
		}
		f.kept = f.offset
	}
	return f, nil
}

func (f *Follower) open() error {
	file, err := os.Open(f.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("follow %s: %w", f.path, err)
	}
	f.file = file
	return nil
}

// Lines is how many lines were written since Follow.
func (f *Follower) Lines() (int, error) {
	if f.file == nil {
		if err := f.open(); err != nil || f.file == nil {
			return 0, err
		}
	}
	if err := f.forget(); err != nil {
		return f.lines, err
	}
	for {
		n, err := f.file.Read(f.buf)
		f.offset += int64(n)
		f.lines += bytes.Count(f.buf[:n], []byte("\n"))
		switch {
		case errors.Is(err, io.EOF):
			return f.lines, nil
		case err != nil:
			return f.lines, fmt.Errorf("follow %s: %w", f.path, err)
		}
	}
}

// forget takes out of the page cache what was counted before this call. That is on disk, but for the last batch.
func (f *Follower) forget() error {
	if f.offset-f.kept < int64(len(f.buf)) {
		return nil
	}
	if err := unix.Fadvise(int(f.file.Fd()), f.kept, f.offset-f.kept, unix.FADV_DONTNEED); err != nil {
		return fmt.Errorf("forget what was read of %s: %w", f.path, err)
	}
	f.kept = f.offset
	return nil
}

// Has returns a condition to wait for: so many lines.
func (f *Follower) Has(lines int) func() (bool, error) {
	return func() (bool, error) {
		n, err := f.Lines()
		return n >= lines, err
	}
}

// Last is the last line of the file. It must be short.
func (f *Follower) Last() (string, error) {
	info, err := os.Stat(f.path)
	if err != nil {
		return "", fmt.Errorf("read the last line of %s: %w", f.path, err)
	}
	tail := make([]byte, min(info.Size(), 8<<10))
	if _, err := f.file.ReadAt(tail, info.Size()-int64(len(tail))); err != nil {
		return "", fmt.Errorf("read the last line of %s: %w", f.path, err)
	}
	tail = bytes.TrimSuffix(tail, []byte("\n"))
	return string(tail[bytes.LastIndexByte(tail, '\n')+1:]), nil
}

// Close ends it.
func (f *Follower) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}
