// Package statelog keeps the saved state also in a broker, in order and a little later, so that an exporter that has
// lost its directory goes on from there. Batches that are saved while the broker is busy are merged into one unit. If
// more than 8 MiB of changes wait, they are dropped, and a new chain begins with a full copy (queue.go).
//
// The log is made of units. A unit is what some commits have changed, all of each (I5), and perhaps a page: all rows of
// a range of keys, as they are after those changes. A segment is the pages of all keys, one after the other, with the
// changes between them: whoever applies all units from a segment's first page on has the state as of the last unit,
// since a page replaces its range and everything later is in order. When the changes since a segment are as large as
// its pages, the next one begins, between them. When that one is whole, what is before it is not needed any more: the
// log is bounded by the size of the state, whatever the time (I6).
//
// A unit is written as parts, small enough for every broker. A part lies in a slot: in Kafka a key of a compacted
// topic, in JetStream a key of a bucket that keeps one value of each. Slots of parts that are not needed any more are
// used again, oldest first, and nothing else removes anything.
//
// A chain is the units of one writer, counted without a hole. A new chain begins where the writer does not know that
// the log has everything before, with a segment. So the log's state is that of the newest whole segment, with the units
// after it up to the first one of which a part is missing (Survey): a torn unit is never applied, nor anything after
// one that is missing. Until the first segment of a new chain is whole, the older chain counts; its slots are not
// touched before.
//
// A standby follows the log into a copy (Follower). The copy is what the log had at a place: it takes whole units of
// one chain, each after the one before, together with the place. Where the log does not go on from there, the copy
// begins anew: another chain counts, or units are gone that it lacks. A copy is never taken for a state that is newer
// than the log.
//
// What is on the exporter's disk alone is not in the log: neither a spool, nor the layer that lies on a sink's fold
// meanwhile. Whoever makes a state of the log finds that sink as its own log has it, and all others as they are. So the
// log stands still for no sink, and a segment is the pages of all keys whoever is behind.
//
// Dead letters are rows of the log beside those of the database.
//
// One exporter writes. The sink below fences: by the transactional id, or by the expected sequence of every message.
// Who opens the log reads whose it is before that, so that a wrong configuration fences nobody (claim).
//
// A writer proves that nobody else has claimed the log, by writing its claim once more (Prove): that is refused when
// somebody has. A unit would not do, since there may be none to write.
//
// Decisions:
//
//   - The state's rows are not the messages' keys. A message per row would cost as much as delivering the event, and a
//     broker with a million subjects takes 350 MB for their index; a row that is deleted would leave a marker in
//     JetStream for ever. And compaction by row would remove from a whole batch what a torn one replaces.
//   - No transaction is asked for: a reader tells a torn unit by its parts. Kafka's delivery is transactional all the
//     same, since idempotent delivery may go on without a fence.
//   - Pages are read from the live state, each as of the moment when all changes before it are in the log. A view of
//     the whole state would hold up compactions for as long as the broker takes.
//   - A log that could not be written to for so long that the changes do not fit into memory gets a new chain. The
//     alternative, to note the changed rows in the state, costs every commit a second row of each.
//   - A copy that cannot go on is emptied before it is filled. A second one beside it would take twice the disk, for
//     takeovers in the seconds of a filling, which restore the state as without a copy.
//   - A copy is written without a sync for each unit. What a crash takes away, the log has still, or the copy is filled
//     anew.
//   - A standby asks the log a few times a second. Long polls would be another way of reading for each broker, and a
//     takeover reads what came since anyway.
//   - The format of rows is that of package checkpoint: an older version refuses a newer log as it refuses a newer
//     state.
package statelog
