package checkpoint

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2"
)

// checkFiles finds what Pebble would take for a new database though it is none: one that lost the file which names its
// manifest. Pebble writes a log or a table only after that file.
func checkFiles(dir string, opts Options) error {
	found, err := pebble.Peek(dir, opts.fs)
	if err != nil {
		// Pebble has no error value for its own format.
		if strings.Contains(err.Error(), "unknown format major version") {
			return &NewerError{Dir: dir, Known: formatVersion}
		}
		return openError(dir, err)
	}
	if found.Exists {
		return checkManifest(dir, found.ManifestFilename, opts.fs)
	}
	names, err := opts.fs.List(dir)
	if err != nil {
		return openError(dir, err)
	}
	for _, name := range names {
		if isTable(name) || isLog(name) {
			return &DamagedError{Op: "open", Dir: dir, Err: errors.New("the marker file of the manifest is missing")}
		}
	}
	if opts.ReadOnly {
		return fmt.Errorf("open state %s: %w", dir, ErrNoState)
	}
	return nil
}

func isTable(name string) bool { return filepath.Ext(name) == ".sst" }

// isLog tells Pebble's logs, whose names are numbers, from those of other programs.
func isLog(name string) bool {
	number, found := strings.CutSuffix(name, ".log")
	return found && number != "" && strings.Trim(number, "0123456789") == ""
}
