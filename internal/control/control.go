package control

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Functions are what the server asks of the exporter. Each may be called from several goroutines. An error that is a
// *RefusedError is the asker's mistake.
type Functions struct {
	// Snapshot sees to a full snapshot, and returns when it is certain to begin.
	Snapshot func(ctx context.Context, request SnapshotRequest) (*Snapshot, error)
	// Owed are the snapshots that are not delivered yet, and those that were stopped in this life, the last ones at
	// least.
	Owed func() (*OwedList, error)
	// Steer stops, pauses or resumes snapshots, and returns when that is durable.
	Steer func(ctx context.Context, request SteerRequest) error
	// Inventory finds what the query is of before the first object is read.
	Inventory func(query Query) (iter.Seq2[Object, error], error)
	// Checkpoint reads the saved state.
	Checkpoint func() (*State, error)
	// Replay sends dead letters again, and returns what became of each.
	Replay func(ctx context.Context, request ReplayRequest) (*Replayed, error)
}

// SnapshotRequest is the body of POST /snapshot.
type SnapshotRequest struct {
	// Resources as kubectl writes them, or as they are configured; none is all.
	Resources []string `json:"resources,omitempty"`
	// Sink that the snapshot is for; "" is all.
	Sink string `json:"sink,omitempty"`
	// Namespace, Name and Selector, of labels, say which objects it is of; "" is all.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Selector  string `json:"selector,omitempty"`
}

// Snapshot is the answer to a SnapshotRequest: the snapshots are owed from now on, also over a restart.
type Snapshot struct {
	Streams []string `json:"streams"`
	Sinks   []string `json:"sinks"`
	// Limits say which objects it is of, where it is not of all.
	Limits change.Limits `json:"limits,omitzero"`
	// Time is when it was asked for, by the exporter's clock.
	Time time.Time `json:"time"`
}

// OwedList is the answer to GET /snapshot.
type OwedList struct {
	Owed    []Owed    `json:"owed"`
	Stopped []Stopped `json:"stopped,omitempty"`
}

// SteerRequest is the body of POST /snapshot/steer. What it asks for is done for all of the snapshots, or for none.
type SteerRequest struct {
	Do  string   `json:"do"` // stop, pause or resume
	IDs []string `json:"ids"`
}

// ReplayRequest is the body of POST /deadletter/replay.
type ReplayRequest struct {
	// Sink whose letters are meant; "" is every sink.
	Sink string `json:"sink,omitempty"`
	// IDs of the letters; none is all.
	IDs []string `json:"ids,omitempty"`
	// Force sends also what is history.
	Force bool `json:"force,omitempty"`
}

// Replayed is the answer to a ReplayRequest: what became of each letter, the oldest first.
type Replayed struct {
	Letters []ReplayedLetter `json:"letters"`
}

// ReplayedLetter is what became of one letter.
type ReplayedLetter struct {
	Sink            string `json:"sink"`
	ID              string `json:"id"`
	Stream          string `json:"stream,omitempty"`
	Object          string `json:"object,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Delivered says that the sink holds it, and that the letter is removed. Otherwise Kept says why the letter is
	// kept.
	Delivered bool   `json:"delivered"`
	Kept      string `json:"kept,omitempty"`
	// LeftOut is what it was sent without, since it did not fit: paths, and before.
	LeftOut string `json:"leftOut,omitempty"`
}

// What can be done with a snapshot that is owed.
const (
	Stop   = "stop"
	Pause  = "pause"
	Resume = "resume"
)

// ErrNotStreaming says that the exporter cannot take a request yet, or no more.
var ErrNotStreaming = errors.New("the exporter does not stream yet, because a sink or the state is not open, or it is about to stop: see /statusz, and ask again")

// RefusedError is a question that cannot be answered as it was asked. Its text names what could be asked.
type RefusedError struct{ Text string }

func (e *RefusedError) Error() string { return e.Text }

// RepeatedError is a question that was followed before.
type RepeatedError struct{ ID string }

func (e *RepeatedError) Error() string {
	return fmt.Sprintf("id %.100q was followed before, and nothing is done twice: give another question an id of its own", e.ID)
}

// problem is the body of every answer that is an error, and the last line of an inventory that was cut short.
type problem struct {
	Error string `json:"error"`
}
