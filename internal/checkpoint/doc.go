// Package checkpoint answers the question "up to where is it safe to forget?".
//
// A Tracker finds which records of a stream are delivered, Marks which places in a sink's log are safe to resume from,
// and a Store keeps both, with the identity of the cluster and the inventory of what the sinks have, in one database
// that changes by whole batches only (I5). Tracker and Marks are pure; package line has their lock, and package
// pipeline decides when to commit.
//
// A Store is made of parts that know one thing each: identity, streams, inventory, images, sinks, subscriptions,
// pending snapshots, absences, spools and what was heard. They read the database, and it knows none of them. A commit
// fills one set of rows through the writer; what it changes step by step, it keeps in a pendingBook and an absenceBook
// until the rows are durable.
//
// Decisions:
//
//   - One Pebble database for positions, inventory and marks, so that one synced batch changes them together. bbolt,
//     SQLite and Badger cost several times the CPU for a million keys under random updates, or do not survive a full
//     disk.
//   - Keys are in list order: the escaped stream name, a zero byte, then namespace/name. So a scan of the inventory and
//     a list are merged as they come.
//   - What a snapshot delivers is committed as all else is. Its objects come in the order of their keys, and could be
//     ingested as sorted tables (Pebble's Ingest), beside the log and the memtable. But an ingestion has a cost of its
//     own of a millisecond and three more syncs, so it takes twice the CPU time for the 800 records that a snapshot
//     commits at once, as much for 4,000, and a quarter less for 8,000; and each leaves a file.
//   - No index by uid. A search reads the inventory (BenchmarkFindUID); an index would nearly double the cost of a
//     commit.
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
//   - The uids of all clusters that were ever behind the name are kept, each before anything is reported of it. Records
//     of any other cluster in a sink's log are never taken for ours.
//   - A state of the format before, which all sinks shared, is converted when it is opened, into rows beside the old ones
//     and with one last write. Where something is open in it, it is refused: what has to be known of a sink is then only
//     in what the earlier version does next.
//   - A sink with records on disk has two layers: the fold of its own log, and what the records say on top of that
//     (sinkstate.go). A log of the state has the first one alone, and so needs no rule of its own for such a sink.
//   - Kept objects that are forgotten are gone for every reader at once; Pebble removes their bytes when it compacts.
//   - An absence remembers what was made since as fresh, and forgets it with its delete, so that churn costs nothing.
//   - When other namespaces are configured, rows move from stream to stream (Store.Inherit). A key by resource alone
//     would need no move, but positions, trackers, subscriptions and pending snapshots are a stream's, and every one of
//     them would need a rule of its own for overlaps.
package checkpoint
