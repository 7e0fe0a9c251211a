package file

import (
	"os"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// New returns a sink that is not open, or every problem of the options.
func New(o Options) (sink.Sink, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.Retry == nil {
		o.Retry = func(string, error) {}
	}
	if o.Path == Stdout {
		return newStream(o), nil
	}
	return newLog(o), nil
}

func newLog(o Options) *Log {
	return &Log{attempts: newAttempts(o), series: series{o.Path, "", time.Now}, openFile: openFile}
}

func newStream(o Options) *Stream {
	if o.Stdout == nil {
		o.Stdout = os.Stdout
	}
	return &Stream{attempts: newAttempts(o)}
}

func newAttempts(o Options) attempts { return attempts{o, 100 * time.Millisecond} }
