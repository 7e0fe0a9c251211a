package task

import (
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/deadletter"
)

// letterFiles are the files of all dead letters, by names that begin with the sink's.
type letterFiles struct {
	dir  string            // of the sinks that have none of their own
	dirs map[string]string // by sink
}

func lettersOf(cfg *config.Config) *letterFiles {
	f := &letterFiles{dir: deadletter.DirOf(cfg.State.Dir), dirs: map[string]string{}}
	for _, s := range cfg.Sinks {
		if s.DeadLetter.Dir != "" {
			f.dirs[s.Name] = s.DeadLetter.Dir
		}
	}
	return f
}

// of is the sink's directory.
func (f *letterFiles) of(sinkName string) *deadletter.Dir {
	dir := f.dir
	if own, found := f.dirs[sinkName]; found {
		dir = own
	}
	return deadletter.New(deadletter.Options{Dir: filepath.Join(dir, sinkName), Sink: sinkName})
}

// names are those of all files.
func (f *letterFiles) names() iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var sinks []string
		for _, dir := range append([]string{f.dir}, slices.Sorted(maps.Values(f.dirs))...) {
			some, err := deadletter.Sinks(dir)
			if err != nil {
				yield("", err)
				return
			}
			sinks = append(sinks, some...)
		}
		slices.Sort(sinks)
		for _, name := range slices.Compact(sinks) {
			files, err := f.of(name).Files()
			if err != nil {
				yield("", err)
				return
			}
			for _, file := range files {
				if !yield(name+"/"+filepath.ToSlash(file), nil) {
					return
				}
			}
		}
	}
}

// clear removes all files: those that count are put back.
func (f *letterFiles) clear() error {
	for name, err := range f.names() {
		if err != nil {
			return err
		}
		sinkName, file, _ := strings.Cut(name, "/")
		if err := f.of(sinkName).Remove(file); err != nil {
			return err
		}
	}
	return nil
}

func (f *letterFiles) read(name string) ([]byte, error) {
	sinkName, file, _ := strings.Cut(name, "/")
	return f.of(sinkName).Read(file)
}

func (f *letterFiles) putBack(name string, content []byte) error {
	sinkName, file, _ := strings.Cut(name, "/")
	return f.of(sinkName).PutBack(file, content)
}
