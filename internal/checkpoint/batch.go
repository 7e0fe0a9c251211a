package checkpoint

import (
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// MaxRecords is the most records that one Batch should hold, of whose objects nothing is kept (see MaxObjects): a
// larger one costs many times as much, because Pebble makes it into a table of its own.
const MaxRecords = 3000

// Batch is what one Commit saves.
type Batch struct {
	// Records that are delivered: of each stream a contiguous prefix of what is not yet saved, in its order (I2).
	Records []*change.Record
	// Marks by the name of the sink, none newer than the records allow.
	Marks map[string]sink.Mark
	// Carried is by the name of the sink what its mark carries, which is in Marks. An empty one forgets that of an
	// earlier mark.
	Carried map[string]Carried
	// PendingSnapshots are snapshots that are owed from now on, in the Generation that they come with or a newer one,
	// whatever After they come with: one that is owed already is owed anew, from its beginning. One is paid by the
	// SnapshotEnd record of its sink, stream, reason and generation.
	PendingSnapshots []PendingSnapshot
	// Steered are pending snapshots, each in the Generation that is meant, with which Steering is done.
	Steered  []PendingSnapshot
	Steering Steering
	// Left are the subscriptions that sinks have no longer, with their pending snapshots and what they miss. Taken are
	// those that they have from now on.
	Left, Taken []Subscription
	// Absent are the sinks that miss streams from the records after this batch on, or from From, where that is set and
	// older. Returning is not read.
	Absent []Absence
	// Held is what the logs hold of sinks that come back.
	Held []Held
	// Chunks are spooled for the sinks by name, with the Value that Encode makes, and their spools are then as the
	// extents say: what is not in them is gone.
	Chunks map[string][]fifo.Chunk
	Spools map[string]fifo.Spool
	// Based are the positions that the logs of sinks are to be compared with, by the sink's subscription; Compared are
	// sinks for which that is done.
	Based    map[Subscription]change.Position
	Compared []string
	// Heard is by the name of the sink what was heard through its broker, together with what was asked for there. An
	// empty one forgets it.
	Heard map[string][]byte
	// Resources are what streams are of, for when nobody serves them any more.
	Resources []change.Stream
	// Over are streams that end here: position, inventory and resource are forgotten, but for the resource where
	// records of them may be OnDisk for a sink.
	Over   []string
	OnDisk bool
}
