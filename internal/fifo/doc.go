// Package fifo orders records and holds what a sink does not have yet. It is what RealFIFO and processorListener's
// pendingNotifications are in client-go (tools/cache, the_real_fifo.go and shared_informer.go), with a bound, and a
// spool on disk.
//
// It is pure: no clock, no goroutine, no lock, no I/O. Time comes with the records or as an argument. The owner of a
// Backlog holds a lock around each call, writes the chunks that it returns, and tells it what was written and read.
//
// # The backlog
//
// A Backlog is everything that one sink does not have, in three places. They reach the sink in this order (I3):
//
//	flight   what the sink is being given: taken, and not acknowledged
//	spool    what is on disk, or on its way there
//	queue    what is in memory, bounded by a Limit (I6)
//
// A queue that spills goes to disk with the batches that save its positions, until the spool is empty again. The flight
// goes to disk, too, ahead of the others: after a crash it is read first, and looked up in the sink's log. The removal
// of a chunk is saved with the mark after its records, or before that mark.
//
// A coalescing queue merges in memory until a spill is triggered: it is full, or its oldest record is half a minute
// old. A record on disk counts as one that the sink may have: nothing merges with it, and the object's delete is sent.
// The queue keeps one delete of each object, since the sink's log may hold an older record of it.
//
// # Decisions
//
//   - One type instead of a queue, a spool and a flight that a listener keeps in step. Whether a record may be taken,
//     saved or acknowledged depends on all three, so the rule would be in the listener, beside a lock, a store and a
//     sink.
//   - The backlog keeps the numbers and extents of chunks, and the store their bytes. A backlog that read the disk
//     itself would hold its owner's lock during I/O.
//   - A method returns what its caller needs, and Signals says who else has to be woken. Callbacks would run under the
//     owner's lock, and channels would be a second state beside this one.
//   - Chunks get their numbers when all records of a save are known. The oldest record of a coalescing queue need not
//     be its next one, and chunks are in the order of the queue.
//   - What was acknowledged is found by its Seq in the flight. Counting from the oldest would be cheaper, but wrong if
//     the sink has a record of the middle already.
package fifo
