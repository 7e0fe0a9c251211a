package checkpoint

// Store is the saved state of one exporter: one directory, owned by one process at a time (I10). Each of its parts
// knows one thing. All methods but Close may be called from several
// goroutines; none may be called after Close, and scans must have ended before it.
//
// Its errors are a *disk.FullError where the volume is full, in which case the same call works later, a *DamagedError
// where the files are not what was written, and otherwise the operating system's.
type Store struct {
	*database

	identity         // which cluster's changes these are
	streams          // what each stream is of
	images           // the objects themselves, as they were delivered last
	pendingSnapshots // the snapshots that sinks are owed
	spools           // queues on disk
}
