package fifo

// trigger is when what is in memory goes to disk: when there is no room, or the oldest record is too old. A queue that
// keeps everything goes there until the disk is empty again.
//
// One that coalesces keeps in memory what waits, where it merges. On a trigger what is in it then goes to disk, in the
// batches that save its positions, and what comes later merges in memory again, after it. A record that has left for
// disk is one that the sink may have (I3): what comes later of its object supersedes nothing, and a delete of it is
// told. What was merged away before is acknowledged, and its successor is on disk, or in line with its position not
// saved.
type trigger struct {
	limit  int64  // bytes on disk; 0 is a backlog that never goes there
	merges bool   // the queue coalesces
	active bool   // what is queued goes to disk
	newest uint64 // the Seq pushed last
	until  uint64 // of a queue that coalesces: what was pushed up to it goes to disk
}

// pull begins to take what is queued to disk. It says whether that may be.
func (t *trigger) pull() bool {
	t.active = t.limit > 0
	t.until = t.newest
	return t.active
}

// release ends that.
func (t *trigger) release() { t.active = false }
