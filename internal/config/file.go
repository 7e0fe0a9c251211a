package config

import "strings"

// File is a destination on disk, or the process's standard output.
type File struct {
	Path   string `key:"path" effect:"place"`
	Rotate Size   `key:"rotate"`
	Keep   int    `key:"keep"`
}

// stdout is the path of a File that stands for standard output.
const stdout = "-"

// check checks the file.
func (f *File) check(k *checker, path string) {
	switch {
	case f.Path == "":
		k.problem(path+".path", "missing; want a file such as /var/log/changes.ndjson, or %q for standard output", stdout)
	case strings.HasSuffix(f.Path, "/"):
		k.problem(path+".path", "%q is a directory; name a file in it", shorten(f.Path))
	case strings.ContainsRune(f.Path, 0):
		k.problem(path+".path", "a path cannot hold a zero byte")
	}
	if f.Rotate != 0 && f.Path == stdout {
		k.problem(path+".rotate", "standard output cannot be rotated; leave it out")
	}
	if f.Keep > 0 && f.Rotate == 0 {
		k.problem(path+".keep", "counts rotated files; give rotate a size, or leave it out")
	}
}
