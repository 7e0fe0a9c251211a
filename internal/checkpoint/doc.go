// Package checkpoint keeps what a restart needs: for each sink the fold of that sink's own log, as far as a mark.
//
// A sink has a mark, rows, places and a spool. A row is what the sink was told last of an object: uid, version and
// history, or that it is gone. A place says, by resource and namespace, up to where the sink was given everything, and
// what it is compared with; one place may stand for all other namespaces. The spool has the records that wait on disk.
// Of these nothing is keyed by stream, so a change of the configured namespaces moves no row.
//
// fold.go says how each item of a log changes that. It is pure. A SinkState applies items to what is saved, and a Store
// saves the states of several sinks in one synced batch (I5).
//
// What the records on disk say is a layer of its own on top of the fold (sinkstate.go). A log of the state has only the
// fold. Whoever lacks the disk, or finds that the sink's log has gone on without it, goes on from the fold.
//
// Decisions:
//
//   - One Pebble database, so that one synced batch changes everything together. bbolt, SQLite and Badger cost several
//     times the CPU for a million keys under random updates, or do not survive a full disk.
//   - Rows are in list order: sink, resource, then namespace/name. So rows and a list can be merged as they come.
//   - Tombstones have a table of their own, and go when the position has passed them and no comparison is under way.
//   - The records of a snapshot are saved as all others are. Sorted tables (Pebble's Ingest) take twice the CPU time
//     for saves of 800 records, as much for 4,000, and a quarter less for 8,000; and each leaves a file.
//   - No index by uid. A search reads the rows (BenchmarkFindUID); an index would nearly double the cost of a commit.
//   - A state of another cluster name is refused, and another uid under the same name begins an epoch. The first is a
//     wrong kubeconfig; the second is a cluster that was rebuilt.
//   - The manifest is checked before the database is opened: Pebble accepts a damaged one silently and then misses
//     batches from the middle. A state is never reset silently; exporter checkpoint reset is the way.
//   - Free space is checked before each commit, since Pebble hangs on a full disk. Below the floor a commit is refused
//     with a disk.FullError and can be tried again.
//   - The file system that Pebble is given makes its files private (privateFS), and Open mends their modes. A umask
//     would apply to the whole process.
//   - Compactions are scheduled here, one at a time, and none before the database is open: with Pebble's own scheduler,
//     an open after a kill waits for one.
//   - Kept objects are compressed with S2: it takes less than half the time of zstd, at four fifths of its ratio, and
//     needs no state.
//   - Places and the records of a spool are CBOR (fxamacker/cbor), which is as fast as a format of our own was. Rows
//     have a format of their own, since there are millions.
//   - The uids of all clusters that ever had the name are kept, each before anything of it is sent. Records of any
//     other cluster in a sink's log are never taken for ours.
package checkpoint
