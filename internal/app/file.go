package app

import (
	"errors"
	"path/filepath"

	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/encode"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/file"
)

// fileDestination is a file.
func fileDestination(s *config.Sink, _ *cluster) (*destination, error) {
	d := &destination{
		transport: encode.File,
		build: func(to outlet) (sink.Sink, error) {
			return file.New(file.Options{
				Path: s.File.Path, MaxBytes: int64(s.File.Rotate), Keep: s.File.Keep, Stdout: to.stdout, Retry: retried(to.told, s.Name),
			})
		},
		read: func(start sink.Start) (sink.Reader, error) { return file.NewReader(s.File.Path, start) },
	}
	if path, err := filepath.Abs(s.File.Path); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		d.places = []place{{what: "file " + path, key: "file.path"}}
	}
	return d, nil
}

// stdoutDestination is the process's standard output.
func stdoutDestination(s *config.Sink, c *cluster) (*destination, error) {
	d, err := fileDestination(s, c)
	if err != nil {
		return nil, err
	}
	d.places = nil
	d.read = func(sink.Start) (sink.Reader, error) {
		return nil, errors.New("standard output cannot be read back: choose another sink")
	}
	return d, nil
}
