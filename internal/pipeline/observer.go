package pipeline

import (
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Observer is told what the pipeline does, and each of its sinks. Every field must be set; NopObserver has them all.
// The callbacks are called from the pipeline's goroutines, sometimes under its locks: they return at once and call
// nothing back.
type Observer struct {
	delivery.Observer
	// Absent is told that a sink which is stopped has left the line: the others wait for it no more, and it is to be
	// given a gap and a full snapshot of everything when it is open again.
	Absent func(sink string)
	// Missed is told that a sink misses a stream from now on, since its format has no schema of it: the others wait for
	// it no more, and it is to be given a gap and a full snapshot of the stream when there is one.
	Missed func(sink string, stream change.Stream)
	// Committed is told of records and marks that are part of the saved state, and how long that took.
	Committed func(batch []*change.Record, marks map[string]sink.Mark, took time.Duration)
	// CommitFailed is told of a failed commit, which is tried again.
	CommitFailed func(err error)
	// Left is told that a stream is over and forgotten.
	Left func(stream change.Stream)
}

// NopObserver is an Observer that ignores everything.
func NopObserver() Observer {
	return Observer{
		Observer:     delivery.NopObserver(),
		Absent:       func(string) {},
		Missed:       func(string, change.Stream) {},
		Committed:    func([]*change.Record, map[string]sink.Mark, time.Duration) {},
		CommitFailed: func(error) {},
		Left:         func(change.Stream) {},
	}
}
