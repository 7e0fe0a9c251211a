package config

// File is a destination on disk, or the process's standard output.
type File struct {
	Path   string `key:"path" like:"path" place:"fixed" need:"a file such as /var/log/changes.ndjson, or \"-\" for standard output" effect:"place"`
	Rotate Size   `key:"rotate"`
	Keep   int    `key:"keep"`
}

// stdout is the path of a File that stands for standard output.
const stdout = "-"
