// Package pipeline is the shell around the pure core: it owns every goroutine of the line, its locks, and the order in
// which things start and stop. DESIGN.md lists goroutines and locks.
//
//	source -> Line.Push -> listener (one per sink) -> Sink.Write -> Seat.Ack -> committer -> Store.Commit
//
// A record is handed to every listener that wants it. It counts as delivered when all of them have acknowledged it
// (I1), and is saved when all records before it in its stream are (I2). Records stay in memory until they are saved;
// the window (package line) bounds them, so a state that cannot be saved stops the line (I6).
//
// # The sink's log after a crash
//
// A sink is opened at its mark and gives the ids behind it, the tail, one by one. A tail may be long: others write to
// a shared log, and a mark may hang back while records wait on disk. So it is folded while it is read, and what is
// saved or another cluster's leaves nothing in memory (package redo, I6). The listener skips those records when the
// watch or a reconcile brings them again, and the mark stays until the tail is passed. Nothing older than what the log
// holds of an object is written behind it, since a log may be compacted.
//
// A mark does not wait for other sinks. If one of them holds the positions back and the mark lags by 4,096 records, the
// mark is saved all the same and carries the ids of the records that its own sink has and the state does not know
// (package line), in the same batch (I5). Open reads these ids before the tail. They take 64 MiB at most (I6); a mark
// that would carry more stays where it is. If the log has lost such a mark, the last mark that carries nothing is
// tried.
//
// Sink-only objects are those that only the tail knows. Normally the watch brings them again. If the server has
// forgotten the history, a reconcile tells the sink which of them are gone. For a sink that was opened after that
// reconcile, its listener tells them, when a record proves it (taking.go). They are no part of the inventory: a list at
// an older version would undo them in the other sinks.
//
// Undeleted objects are those whose delete the log has lost together with its end. After a sink.LostError a sink that
// can read its whole log (sink.Recaller) does so, and the next full snapshot tells this sink which objects are gone.
//
// # Full snapshots
//
// A sink's subscription says that it takes a stream. A new subscription, a lost log and a request each become a debt,
// saved before anything follows from it, and paid by the snapshot.end that the sink acknowledges. A debt that is noted
// again gets a new generation, which a running snapshot does not pay. A debt remembers the key up to which the sink has
// acknowledged the snapshot, so that a crash loop ends.
//
// # Queues
//
// What a sink does not have is its backlog: in memory, on disk, and being written (package fifo). A listener has the
// lock around it, the channels of those who wait for it, and the reading of the disk; the committer writes there.
//
// The inventory may be ahead of a sink that coalesces by what was merged away.
//
// If a sink that does not spool holds the position back, records of a full spooling queue cannot go to disk. After a
// second that queue may exceed its limit (package line), bounded by the window.
//
// # Sinks that are late, stopped or absent
//
// A sink that is not open after five seconds holds up nobody: its queue fills as its policy says. A sink that fails for
// good stops alone and is opened again after one to ten minutes (stopped.go). A stopped sink that others wait for
// leaves the line (absent.go): an Absence per stream is saved, the trackers excuse it, and its queue is emptied. From
// then on each commit notes the deletes that it misses. When it is open again, every stream gives it a gap, those
// deletes, and a full snapshot.
//
// # Decisions
//
//   - Sinks give ids and return no list. A list of our ids is short as a rule, but only the pipeline knows what is
//     saved.
//   - A mark carries ids, not a version per stream. Versions are shorter, and say nothing about what a reconcile found,
//     records that share a version, partitions, and sink-only objects.
//   - A tracker per stream, not one for all: a stream that waits for one sink holds up no other stream's position.
//   - Frames and gaps are records of the stream, not a side channel: a consumer of one subject sees where its gap is.
//   - A rejected record is replaced by a gap record of reason policy, and kept as a dead letter before that (I1).
//     Stopping would let one oversized object end an audit trail; `oversize: reject` chooses that.
//   - The gap for a rejected record names a long name by its hash (change.NoteOf). Leaving the name out would give all
//     such gaps one key; cutting it off would give two objects one.
//   - A letter is sent again by the running exporter in the sink's own queue. A command that writes into the log itself
//     would be a second writer (I10). A superseded letter is kept unless somebody insists, since it would lead
//     consumers that keep states back in time (I3).
//   - The missed deletes of an absent sink are kept in the state. Its own log need not reach back that far, and a copy
//     of the inventory would stall commits.
//   - A reconcile under way is noted in the saved position, because it moves the inventory ahead of the position.
//   - Bookmarks alone are saved two seconds later, so that hundreds of quiet streams cost one commit every other
//     second.
//   - What a log or a spool holds of a stream that is not configured makes its sink absent from that stream
//     (unread.go). To keep the ids themselves would spare the full snapshot when the stream is back, and would need a
//     life cycle of its own beside marks and carried ids.
//   - A sink that was fenced by another writer is not opened again before the next start: the two would end each other
//     in turn.
//   - Records from disk are shaped again by today's rules (shapeAgain), since I9 holds for whatever leaves.
package pipeline
