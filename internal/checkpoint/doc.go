// Package checkpoint keeps what a restart needs: for each sink the fold of that sink's own log, as far as a mark.
//
// Of a sink it has a mark, rows, places and a spool. A row is what the sink was told last of an object: uid, version
// and history, or that it is gone. A place is up to where the sink was given everything, and what it is compared with,
// by resource and namespace; one place may stand for all other namespaces. The spool has the records that wait on disk.
// Nothing is keyed by stream, so other namespaces in the configuration move no row.
//
// fold.go says what each item of a log makes of that. It is pure. A SinkState applies items to what is saved, and a
// Store saves what several sinks have, in one synced batch (I5).
//
// What is on disk for a sink is a layer of its own on top of the fold (sinkstate.go). A log of the state has the fold
// alone. Whoever lacks the disk, or finds that the sink's log goes on in another way, goes on from the fold.
//
// Decisions:
//
//   - One Pebble database, so that one synced batch changes everything together. bbolt, SQLite and Badger cost several
//     times the CPU for a million keys under random updates, or do not survive a full disk.
//   - Keys are in list order: sink, resource, then namespace/name. So rows and a list are merged as they come.
//   - Tombstones have a table of their own, and go when the position has passed them and nothing is compared.
//   - What a snapshot tells is saved as all else is. Sorted tables (Pebble's Ingest) take twice the CPU time for the
//     800 records that are saved at once, as much for 4,000, and a quarter less for 8,000; and each leaves a file.
//   - No index by uid. A search reads the rows (BenchmarkFindUID); an index would nearly double the cost of a commit.
//   - The state of another cluster name is refused, and another uid behind the same name is an epoch. The first is a
//     wrong kubeconfig; the second is a cluster that was rebuilt.
//   - The manifest is checked before the database is opened: Pebble accepts a damaged one silently and then misses
//     batches from the middle. A state is never reset silently; exporter checkpoint reset is the way.
//   - Free space is checked before each commit, since Pebble hangs on a full disk. Below the floor a commit is refused
//     with a disk.FullError and can be tried again.
//   - The files are made private by the file system that Pebble is given (privateFS), and mended at open. A umask would
//     be the whole process's.
//   - Compactions are scheduled here, one at a time and none before the database is open: with Pebble's own scheduler
//     an open after a kill waits for one.
//   - Kept objects are compressed with S2: it takes less than half the time of zstd, at four fifths of its ratio, and
//     needs no state.
//   - Places and the records of a spool are CBOR (fxamacker/cbor), which is as fast as a form of our own was. Rows have
//     a form of their own, since there are millions.
//   - The uids of all clusters that were ever behind the name are kept, each before anything is reported of it. Records
//     of any other cluster in a sink's log are never taken for ours.
package checkpoint
