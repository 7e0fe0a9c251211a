package file

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// Stdout is the path that stands for standard output.
const Stdout = "-"

// Options configures a sink. Its zero value lacks a path.
type Options struct {
	// Path of the file that is appended to, or Stdout. Its directory must exist.
	Path string
	// MaxBytes is the size at which a new file is begun; a line that is longer has a file of its own. 0 is never.
	// "dir/changes.ndjson" is then renamed to "dir/changes-20261121T023314.123456789Z.ndjson".
	MaxBytes int64
	// Keep is how many renamed files are left, 0 for all. A file younger than a minute stays in any case, and so does
	// what lies after the saved mark (see sink.Keeper).
	Keep int
	// Stdout is written to if Path is Stdout; nil is os.Stdout.
	Stdout io.Writer
	// Retry, if set, is told of each attempt that is repeated: "disk_full", "io_error", and "retention" for a file that
	// could not be deleted and will be at the next rotation.
	Retry sink.RetryFunc
}

func (o *Options) validate() error {
	var problems []error
	report := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if o.Path == "" {
		report("configure file: no path: name a file, or %q for standard output", Stdout)
	}
	if strings.HasSuffix(o.Path, string(filepath.Separator)) {
		report("configure file %s: the path is a directory: name a file in it", o.Path)
	}
	if o.MaxBytes < 0 || o.Keep < 0 {
		report("configure file %s: negative size or number of files: use 0 for no limit", o.Path)
	}
	if o.Keep > 0 && o.MaxBytes == 0 {
		report("configure file %s: a number of files to keep, but no size to rotate at: set both or none", o.Path)
	}
	if o.Path == Stdout && (o.MaxBytes > 0 || o.Keep > 0) {
		report("configure file %s: standard output cannot be rotated: remove the limits", o.Path)
	}
	return errors.Join(problems...)
}

// noun is what errors call the sink's place.
func (o *Options) noun() string {
	if o.Path == Stdout {
		return "standard output"
	}
	return "file " + o.Path
}
