package rig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// Follower counts the lines of a file that grows.
type Follower struct {
	path  string
	file  *os.File
	lines int
	buf   []byte
}

// Follow follows the file from its present end, or from its begin where it does not exist yet.
func Follow(path string) (*Follower, error) {
	f := &Follower{path: path, buf: make([]byte, 1<<20)}
	if err := f.open(); err != nil {
		return nil, err
	}
	if f.file != nil {
		if _, err := f.file.Seek(0, io.SeekEnd); err != nil {
			return nil, fmt.Errorf("follow %s: %w", path, err)
		}
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
	for {
		n, err := f.file.Read(f.buf)
		f.lines += bytes.Count(f.buf[:n], []byte("\n"))
		switch {
		case errors.Is(err, io.EOF):
			return f.lines, nil
		case err != nil:
			return f.lines, fmt.Errorf("follow %s: %w", f.path, err)
		}
	}
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
