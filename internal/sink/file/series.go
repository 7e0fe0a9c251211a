package file

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

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
