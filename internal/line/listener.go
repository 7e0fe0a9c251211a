package line

import (
	"context"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// Member is a listener as the line knows it: its sink, what that wants, and where records wait for it.
type Member struct {
	Name     string
	Wants    func(*change.Stream) bool // nil is all
	Room     fifo.Limit                // of its queue
	Coalesce bool                      // the queue holds the newest record of each object alone
	Recovery *Recovery

	Queue Queue
	Disk  Disk
	// Below returns when the queue has less than so many bytes, and nothing is on disk, or with ctx's error; where it
	// has to wait, half of them are enough, and waited is true. It does not wait for a sink that is not in line.
	Below    func(ctx context.Context, bytes int) (waited bool, err error)
	Gate     Gate // nil: the sink's format can encode every record
	Patience Patience
	// Delivered notes that the sink holds the batch. It returns those of it that are not on disk, and whether the mark
	// after the batch may count: what is on disk is given again after a crash, until all that was taken with it is
	// delivered. The line's lock is held.
	Delivered func(batch []*change.Record) (tracked []*change.Record, counts bool)
}

// Queue is where records wait for one sink.
type Queue interface {
	// Reserve waits for room for the record, or for the end of ctx.
	Reserve(ctx context.Context, rec *change.Record) error
	// Cancel gives room of the size back.
	Cancel(size int)
	// Enter takes a record that goes in line, and queues it if it is wanted; its room is reserved then. It returns the
	// records that this one has made superfluous, and whether the committer has work. The line's lock is held.
	Enter(rec *change.Record, wanted bool) (superseded []*change.Record, wake bool)
}

// Disk is the way of queued records to disk, in the batches that save their positions. The line's lock is held in each
// call.
type Disk interface {
	// State is asked before records are taken to disk, and after it.
	State() DiskState
	// Spill takes a record out that the sink has not acknowledged and whose position is to be saved. It is false where
	// the record has an answer and goes nowhere.
	Spill(rec *change.Record) bool
	// Chunks are what was taken out since they were asked for last.
	Chunks() []fifo.Chunk
}

// DiskState is where a sink's records are.
type DiskState struct {
	Takes  bool // what the sink has not acknowledged may go to disk
	Behind bool // some of what is on disk, or on its way there, is not delivered
	Taken  bool // some of what the sink is being given is on disk
}

// Gate is a sink's format as a record meets it that goes in line. It answers at once, and is asked without the line's
// lock.
type Gate interface {
	// Admits says whether the format can encode records of the stream now.
	Admits(stream *change.Stream) bool
	// Holds returns nil where it can, and where the sink is stopped: nobody waits for it, and what is queued for it is
	// encoded when it is back. Else it returns a channel that is closed when that may be otherwise.
	Holds(stream *change.Stream) (changed <-chan struct{})
	// Refuse notes that others have waited for long. The committer decides whether they go on without the sink.
	Refuse(stream *change.Stream)
}

// Patience is for whom nobody can wait any longer. The line's lock is held in each call.
type Patience interface {
	// SpillNow begins to take the queue to disk; false is that it cannot.
	SpillNow() bool
	// LetGo makes the sink leave the line if it is stopped and cannot be spooled for.
	LetGo()
	// Overcommit lets a queue that goes to disk exceed its limit while others keep it from getting there.
	Overcommit(stuck bool)
}

// BatchLimit bounds one Write: large enough to amortise a sync, small enough that a sink's memory stays small beside
// its queue. What goes to disk is read again in batches of this size.
func BatchLimit() fifo.Limit { return fifo.Limit{Bytes: 4 << 20, Records: 2048} }

// MergeFor is the age of the oldest record at which a queue that coalesces goes to disk for the sake of others that
// wait: below it what can be merged is.
const MergeFor = 5 * time.Second

// OvercommitAfter is how long a queue that is to go to disk waits for others that keep the positions from moving.
const OvercommitAfter = time.Second

// seat is what the line knows of one listener. The line's mu guards it.
type seat struct {
	Member
	index  int
	resume resumePoint
}

// bit is the listener's in the line's masks.
func (s *seat) bit() uint64 { return 1 << s.index }

// wants says whether the record is for this listener's sink.
func (s *seat) wants(rec *change.Record) bool {
	return (rec.Sink == "" || rec.Sink == s.Name) && (s.Wants == nil || s.Wants(rec.Stream))
}
