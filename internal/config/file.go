package config

import (
	"slices"
	"strings"
)

// File is a destination on disk, or the process's standard output.
type File struct {
	Path   string // stdout is standard output
	Rotate Size   // start a new file above this size; 0 never does
	Keep   int    // rotated files to keep; 0 keeps all
}

// stdout is the path of a File that stands for standard output.
const stdout = "-"

func (f *File) keys() []key {
	return []key{
		{"path", text(&f.Path), "Needed. The file; `-` is standard output."},
		{"rotate", sizes(0).into(&f.Rotate), "Size above which a new file is begun. Without it, never."},
		{"keep", counts(0, unlimited).into(&f.Keep), "Rotated files to keep. Without it, all."},
	}
}

// routes are none: all lines are in one file.
func (f *File) routes() routes { return routes{} }

// check checks the file, and that its lines can have the format.
func (f *File) check(k *checker, path, format string) {
	switch {
	case f.Path == "":
		k.problem(path+".path", "missing; want a file such as /var/log/changes.ndjson, or %q for standard output", stdout)
	case strings.ContainsRune(f.Path, 0):
		k.problem(path+".path", "a path cannot hold a zero byte")
	}
	if f.Rotate != 0 && f.Path == stdout {
		k.problem(path+".rotate", "standard output cannot be rotated; leave it out")
	}
	if f.Keep > 0 && f.Rotate == 0 {
		k.problem(path+".keep", "counts rotated files; give rotate a size, or leave it out")
	}
	if slices.Contains(Formats(), format) && !slices.Contains(LineFormats(), format) {
		k.problem(strings.TrimSuffix(path, "file")+"format", "%s needs headers, which a file does not have; allowed here: %s", format, strings.Join(LineFormats(), ", "))
	}
}
