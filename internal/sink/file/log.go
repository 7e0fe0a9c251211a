package file

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// Log is the sink on a file. It starts no goroutine.
type Log struct {
	attempts
	series
	active
	openFile func(path string) (handle, error)
	renamed  bool   // a rotation began: file has its new name, and nothing is at path yet
	kept     *place // the saved mark; nil while none is known
}

func (l *Log) lost(want string, offset int64) *sink.LostError {
	have := fmt.Sprintf("byte %d", l.size)
	if l.size >= offset {
		have += " of another file"
	}
	return &sink.LostError{Log: "file " + l.options.Path, Want: want, Have: have}
}

// mark is the place at the end of what is durable.
func (l *Log) mark() (sink.Mark, error) {
	sum, err := sumAt(l.file, l.size)
	if err != nil {
		return "", fmt.Errorf("read back file %s: %w", l.options.Path, err)
	}
	text, err := json.Marshal(place{Offset: l.size, Sum: sum, After: l.newest})
	return sink.Mark(text), err
}

// undisturbed notices another hand on the file before a batch goes into a file that nobody will find.
func (l *Log) undisturbed() error {
	here, err := os.Stat(l.path)
	if err != nil {
		return fmt.Errorf("write to file %s: it was taken away: %w", l.options.Path, err)
	}
	ours, err := l.file.Stat()
	if err != nil {
		return fmt.Errorf("write to file %s: %w", l.options.Path, err)
	}
	if !os.SameFile(here, ours) {
		return fmt.Errorf("write to file %s: it was replaced by another file: leave its rotation to kubecdc", l.options.Path)
	}
	if here.Size() != l.size && !l.dirty {
		return fmt.Errorf("write to file %s: it has %d bytes, not the %d that were written: leave it to kubecdc alone",
			l.options.Path, here.Size(), l.size)
	}
	return nil
}

// fitting is how many of the messages the active file has room for.
func (l *Log) fitting(batch []sink.Message) int {
	if l.options.MaxBytes == 0 {
		return len(batch)
	}
	end := l.size
	for i := range batch {
		if len(batch[i].Value) == 0 {
			continue
		}
		line := int64(len(batch[i].Value)) + 1
		if end > 0 && end+line > l.options.MaxBytes {
			return i
		}
		end += line
	}
	return len(batch)
}

// release gives the lock back with the file. What was acknowledged is durable already.
func (l *Log) release() error {
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.active, l.renamed = active{buf: l.buf}, false
	return err
}
