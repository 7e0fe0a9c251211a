// Package fifo orders records and holds what a sink does not have. It plays the part of client-go's RealFIFO and of
// processorListener's pendingNotifications (tools/cache, the_real_fifo.go and shared_informer.go), with a bound and a
// disk after it.
//
// It is pure: no clock, no goroutine, no lock, no I/O. Time comes in with the records or as an argument. Whoever owns a
// Backlog holds a lock around each use of it, writes the chunks that it gives, and tells it what was written and read.
//
// # The backlog
//
// A Backlog is the whole of what one sink does not have, in three places. They are taken in this order (I3):
//
//	flight   what the sink is being given: taken, and not acknowledged
//	spool    what is on disk, or on its way there
//	queue    what is in memory, bounded by a Limit (I6)
//
// A queue goes to disk in the batches that save its positions, until the spool is empty again. What the sink is being
// given goes to disk, too, ahead of the others: after a crash it is the first to be read, and is looked up in the
// sink's log. The removal of a chunk is saved with the mark after its records, or before it.
//
// A coalescing queue merges in memory until its spill is triggered: it is full, its oldest record is half a minute old,
// or others have waited for it. A record on disk counts as one that the sink may have: nothing merges with it, and its
// delete is reported. The queue keeps a delete of each object, since the sink's log may hold an older record of it.
//
// # Decisions
//
//   - One type, not a queue, a spool and a flight that a listener keeps in step. Whether a record may be taken, saved
//     or acknowledged depends on all three, so the rule would be in the listener, which has a lock, a store and a sink.
//   - The backlog keeps the chunks' numbers and extents, and the store their bytes. A backlog that read the disk by
//     itself would hold its owner's lock during I/O.
//   - A use returns what its caller needs, and Signals whom else it concerns. Callbacks would run under the owner's
//     lock, and channels would be a second state beside this one.
//   - Chunks get their numbers when all of a batch is known. Records do not leave a coalescing queue in the order
//     in which they are acknowledged, and a chunk has the order of the queue.
//   - What was acknowledged is found by its Seq among what was taken. A count of the oldest would be cheaper, and wrong
//     where the sink has something of the middle already.
package fifo
