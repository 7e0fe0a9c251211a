package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
)

var _ sink.Reader = (*Reader)(nil)

// Reader reads the lines of a file sink, through its rotated files and to the end of the active one. It takes no lock:
// the exporter may be writing.
type Reader struct {
	series series
	start  sink.Start
	file   *os.File // nil before the first Read
	name   string   // under which it was opened
	offset int64    // after the last whole line
	line   int      // of the last whole line, from 1
}

// NewReader returns a reader of the file at the path. Standard output cannot be read back.
func NewReader(path string, start sink.Start) (*Reader, error) {
	if path == Stdout {
		return nil, errors.New("standard output cannot be read back: choose another sink")
	}
	return &Reader{series: series{path, "", time.Now}, start: start}, nil
}

// Read is as in sink.Reader. A file that is not there yet has no lines.
func (r *Reader) Read(ctx context.Context, each func(*sink.Stored) error) error {
	if err := r.read(ctx, each); err != nil {
		return fmt.Errorf("read file %s: %w", r.series.path, err)
	}
	return nil
}

func (r *Reader) read(ctx context.Context, each func(*sink.Stored) error) error {
	if r.file == nil {
		if err := r.begin(ctx); err != nil || r.file == nil {
			return err
		}
	}
	for {
		if err := r.lines(ctx, each); err != nil {
			return err
		}
		next, err := r.successor()
		if err != nil || next == "" {
			return err
		}
		// It has a successor, so it is complete; some of it may have been written since the look at its end.
		if err := r.lines(ctx, each); err != nil {
			return err
		}
		if err := r.open(next); err != nil {
			return err
		}
	}
}

// begin opens the oldest file, or the active one at its end.
func (r *Reader) begin(ctx context.Context) error {
	names, err := r.paths()
	if err != nil || len(names) == 0 {
		return err
	}
	if !r.start.End {
		return r.open(names[0])
	}
	if err := r.open(names[len(names)-1]); err != nil {
		return err
	}
	return r.lines(ctx, func(*sink.Stored) error { return nil })
}

// paths are those of the rotated files, oldest first, and of the active one, those that there are.
func (r *Reader) paths() ([]string, error) {
	rotated, err := r.series.rotated()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range rotated {
		names = append(names, r.series.sibling(name))
	}
	if _, err := os.Stat(r.series.path); err == nil {
		names = append(names, r.series.path)
	}
	return names, nil
}

// successor is the file after the one that is open, "" where there is none yet. Where retention has taken the open one
// away, it is the oldest that is left.
func (r *Reader) successor() (string, error) {
	open, err := r.file.Stat()
	if err != nil {
		return "", err
	}
	names, err := r.paths()
	if err != nil || len(names) == 0 {
		return "", err
	}
	for i, name := range names {
		if info, err := os.Stat(name); err == nil && os.SameFile(info, open) {
			if i+1 < len(names) {
				return names[i+1], nil
			}
			return "", nil
		}
	}
	return names[0], nil
}

func (r *Reader) open(path string) error {
	next, err := os.Open(path)
	if err != nil {
		return err
	}
	old := r.file
	r.file, r.name, r.offset, r.line = next, path, 0, 0
	if old == nil {
		return nil
	}
	return old.Close()
}

// lines hands on the whole lines after the offset. What has no newline yet is read again the next time: a failed write
// is cut off again by the sink.
func (r *Reader) lines(ctx context.Context, each func(*sink.Stored) error) error {
	return eachLine(io.NewSectionReader(r.file, r.offset, 1<<62), func(line []byte) error {
		r.offset += int64(len(line))
		r.line++
		stored := sink.Stored{Place: fmt.Sprintf("file %s line %d", r.name, r.line), Value: bytes.TrimSuffix(line, []byte("\n"))}
		if err := each(&stored); err != nil {
			return err
		}
		return context.Cause(ctx)
	})
}

// Close is as in sink.Reader.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	return err
}

// stamp sorts as text in the order of time.
const stamp = "20060102T150405.000000000Z"

// series is the active file and the rotated ones beside it, by their names.
type series struct {
	path   string // of the active file
	newest string // the name of the newest rotated file, "" if there never was one
	now    func() time.Time
}

// resolve follows symbolic links, so that a rotation renames the file and not the link.
func (s *series) resolve(path string) {
	s.path = path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		s.path = real
	}
}

// sibling is the path of a file beside the active one.
func (s *series) sibling(name string) string { return filepath.Join(filepath.Dir(s.path), name) }

// affixes are what a rotated file's name has before and after its time.
func (s *series) affixes() (prefix, suffix string) {
	base := filepath.Base(s.path)
	suffix = filepath.Ext(base)
	if suffix == base { // a dot file without extension
		suffix = ""
	}
	return strings.TrimSuffix(base, suffix) + "-", suffix
}

// rotatedAt is when the file of this name was rotated; ok is false for a name that no rotation gave.
func (s *series) rotatedAt(name string) (at time.Time, ok bool) {
	prefix, suffix := s.affixes()
	name, hasPrefix := strings.CutPrefix(name, prefix)
	name, hasSuffix := strings.CutSuffix(name, suffix)
	at, err := time.Parse(stamp, name)
	return at, hasPrefix && hasSuffix && err == nil
}

// rotated lists the names of the rotated files, oldest first, and remembers the newest.
func (s *series) rotated() ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(s.path))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if _, ok := s.rotatedAt(entry.Name()); ok && entry.Type().IsRegular() {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names)
	if len(names) > 0 {
		s.newest = names[len(names)-1]
	}
	return names, nil
}

// nextName is later than all names that were given, also if the clock was set back.
func (s *series) nextName() string {
	at := s.now().UTC()
	if last, ok := s.rotatedAt(s.newest); ok && !at.After(last) {
		at = last.Add(1)
	}
	prefix, suffix := s.affixes()
	return prefix + at.Format(stamp) + suffix
}
