package listener

import (
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// Observer is told what becomes of the records for a sink. Every field must be set; NopObserver has them all. The
// callbacks are called from the pipeline's goroutines, sometimes under its locks: they return at once and call nothing
// back.
type Observer struct {
	// Queued is told what a listener holds after that changed.
	Queued func(sink string, backlog fifo.Levels)
	// Opened is told that a sink is open, and how many records after its mark were found in its log.
	Opened func(sink string, found int)
	// Written is told of a batch that is durable, and how long Write took.
	Written func(sink string, batch []*change.Record, took time.Duration)
	// Failed is told of a sink's error; the listener opens the sink again.
	Failed func(sink string, err error)
	// Stopped is told of a sink's error that only a person can mend. The sink is opened again now and then; the others
	// go on.
	Stopped func(sink string, err error)
	// Rejected is told of a record that the sink will never take, and why.
	Rejected func(sink string, rec *change.Record, reason string, err error)
	// Coalesced is told of records that newer ones of the same object have made superfluous.
	Coalesced func(sink string, records int)
	// NotKept is told why a dead letter could not be kept. It is tried again, and the sink waits for it.
	NotKept func(sink string, err error)
	// Dropped is told that a rejected record was not kept, since the sink's dead letters have reached their bound.
	Dropped func(sink string)
	// Trimmed is told of a durable record of which something was cut to make it fit; rec.Remarks say what.
	Trimmed func(sink string, rec *change.Record)
	// Committed is told that something is part of the saved state, and how long that took.
	Committed func(took time.Duration)
	// CommitFailed is told of a failed commit, which is tried again.
	CommitFailed func(err error)
	// Replayed is told of a dead letter that was sent again, nil, or why it was not.
	Replayed func(sink string, rec *change.Record, err error)
}

// NopObserver is an Observer that ignores everything.
func NopObserver() Observer {
	return Observer{
		Queued:    func(string, fifo.Levels) {},
		Opened:    func(string, int) {},
		Written:   func(string, []*change.Record, time.Duration) {},
		Failed:    func(string, error) {},
		Stopped:   func(string, error) {},
		Rejected:  func(string, *change.Record, string, error) {},
		Coalesced: func(string, int) {}, Committed: func(time.Duration) {}, CommitFailed: func(error) {},
		NotKept:  func(string, error) {},
		Dropped:  func(string) {},
		Trimmed:  func(string, *change.Record) {},
		Replayed: func(string, *change.Record, error) {},
	}
}
