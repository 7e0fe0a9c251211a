package config

import (
	"maps"
	"strings"
)

// origin is where a configuration's values were written.
type origin struct {
	file  string
	lines map[string]int // by path
}

func (o origin) source() string {
	if o.file == "" {
		return "configuration"
	}
	return "configuration " + o.file
}

// line finds the line of a path, or of the nearest thing around it: what is missing has no line of its own.
func (o origin) line(path string) int {
	for path != "" {
		if line := o.lines[path]; line != 0 {
			return line
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return 0
}

// forget is for a value that no longer is the file's.
func (o origin) forget(path string) {
	maps.DeleteFunc(o.lines, func(p string, _ int) bool {
		rest, under := strings.CutPrefix(p, path)
		return under && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}
