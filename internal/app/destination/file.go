package destination

import (
	"errors"
	"path/filepath"

	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/file"
)

// fileDestination is a file, or the process's standard output.
func fileDestination(s *config.Sink) *Destination {
	d := &Destination{
		encoding: encode.Options{Transport: encode.File},
		InUse:    func(err error) bool { return errors.As(err, new(*file.InUseError)) },
		build: func(to Outlet) (sink.Sink, error) {
			return file.New(file.Options{
				Path: s.File.Path, MaxBytes: int64(s.File.Rotate), Keep: s.File.Keep, Stdout: to.Stdout, Retry: retried(to.Told, s.Name),
			}), nil
		},
		read: func(start sink.Start) (sink.Reader, error) { return file.NewReader(s.File.Path, start) },
	}
	d.Address = fileAddress(s.File.Path)
	d.What = "file " + d.Address
	d.Places = []Place{{What: d.What, Key: "file.path"}}
	if s.Kind() == config.KindStdout {
		d.Places, d.Address = nil, "standard output"
	}
	return d
}

// fileAddress is the file's own name, whatever links lead to it.
func fileAddress(path string) string {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if real, err := filepath.EvalSymlinks(absolute); err == nil {
		return real
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(absolute)); err == nil {
		return filepath.Join(dir, filepath.Base(absolute))
	}
	return absolute
}
