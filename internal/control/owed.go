package control

import (
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// The states of a snapshot that is owed.
const (
	Waits    = "waits"    // it is not read yet
	Reads    = "reads"    // from the API server
	Delivers = "delivers" // it is read: the sink is given the rest
	Paused   = "paused"
)

// Owed is a full snapshot that a sink is to be given, and has not acknowledged to its end.
type Owed struct {
	ID     string `json:"id,omitempty"` // "" of an earlier version
	Sink   string `json:"sink"`
	Stream string `json:"stream"`
	Reason string `json:"reason"` // one of change.Reason
	// Limits say which objects it is of, where it is not of all.
	Limits change.Limits `json:"limits,omitzero"`
	// State, Objects and Percent are of a running exporter: how many objects were listed, and how many that is of all,
	// nil where nobody knows.
	State   string `json:"state,omitempty"`
	Objects int    `json:"objects,omitempty"`
	Percent *int   `json:"percent,omitempty"`
}

// Stopped is a snapshot that is owed no more, though its sink may have a part of it.
type Stopped struct {
	Owed
	Time time.Time `json:"time"` // by the exporter's clock
}

// owedOf is what people are told of a pending snapshot.
func owedOf(p *checkpoint.PendingSnapshot) Owed {
	owed := Owed{ID: p.ID(), Sink: p.Sink, Stream: p.Stream, Reason: string(p.Reason), Limits: p.Limits}
	if p.Paused {
		owed.State = Paused
	}
	return owed
}

// ReadOwed reads which snapshots are owed, sorted by sink and stream.
func ReadOwed(store *checkpoint.Store) ([]Owed, error) {
	pendingSnapshots, err := store.PendingSnapshots()
	var owed []Owed
	for i := range pendingSnapshots {
		owed = append(owed, owedOf(&pendingSnapshots[i]))
	}
	return owed, err
}
