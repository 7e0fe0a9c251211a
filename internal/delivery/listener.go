package delivery

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/cenkalti/backoff/v4"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/line"
	"github.com/kubecdc/kubecdc/internal/redo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Listener carries records from its queue to its sink. It is client-go's processorListener with a bounded queue and an
// acknowledgement. It stands on three types, each of which knows only the one before it: what waits for the sink
// (intake), what of that is on disk (onDisk), and what an earlier process or a failed batch has left in the sink's log
// (past). Beside them is what is on its way into the log (outgoing), with what makes a record fit (trimming) and what
// is kept of one that never does (deadLetters). One goroutine at a time opens or runs it.
type Listener struct {
	past
	Index       int // among the stops
	lost        func(sinkName string, mark, plain sink.Mark) error
	stops       *Stops                      // of all sinks
	seldom      *backoff.ExponentialBackOff // how long a sink waits that is stopped
	saved       atomic.Pointer[sink.Mark]   // the mark that is saved: where a crash would find the sink; nil before the first
	known       *sink.Mark                  // the one that the sink was told is saved
	patience    patience                    // with the sink
	out         *outgoing                   // the batch that is written
	trimming    trimming                    // of what is too large
	deadLetters deadLetters                 // of what it will never take
}

// Config is what the listeners of a run have in common.
type Config struct {
	ClusterUID string
	Streams    []change.Stream // of the run
	Store      *checkpoint.Store
	Reshape    func(*change.Record) error // nil leaves what comes from disk as it is
	Observer   Observer
	Stops      *Stops
	// Prove is that of pipeline.Config; nil is that nobody else could take over.
	Prove func(ctx context.Context) error
	// OweLost sees to a full snapshot for a sink whose log has lost records, and whose marks are to be saved with it.
	OweLost func(sinkName string, mark, plain sink.Mark) error
	// Shape decides whether a record goes on that a listener makes.
	Shape func(rec *change.Record)
}

// New makes the listener of the sink, which is counted among the stops.
func New(index int, s Sink, config *Config) *Listener {
	out := newOutgoing(&s, config.ClusterUID)
	return &Listener{
		past: past{
			onDisk: onDisk{
				intake: newIntake(s, config.Observer), clusterUID: config.ClusterUID, store: config.Store, reshape: config.Reshape,
				Recovery: line.Recovery{Log: redo.NewLog(takenOf(&s, config.Streams), s.Coalesce)},
			},
			reader: readerOf(config.Store, config.ClusterUID), shape: config.Shape, prove: config.Prove,
		},
		Index: index, seldom: retrySeldom(), lost: config.OweLost, stops: config.Stops, out: out,
		trimming: trimming{out: out, trims: s.Oversize.Trims}, deadLetters: deadLetters{s.Name, s.DeadLetters, out, config.Observer},
	}
}

// takenOf are the streams that the sink takes. What its log holds of others is noted as missed.
func takenOf(s *Sink, streams []change.Stream) []change.Stream {
	return slices.DeleteFunc(slices.Clone(streams), func(stream change.Stream) bool { return s.Wants != nil && !s.Wants(&stream) })
}

// SavedMark is where a crash would find the sink.
func (l *Listener) SavedMark() sink.Mark {
	if saved := l.saved.Load(); saved != nil {
		return *saved
	}
	return ""
}
