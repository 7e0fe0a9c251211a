// Package pipeline is the shell around the pure core: it starts and stops the goroutines of the line, in their order.
// The locks of the line are in packages line and delivery. DESIGN.md lists goroutines and locks.
//
//	source -> Line.Push -> listener (one per sink) -> Sink.Write -> Seat.Ack -> committer -> Store.Commit
//
// A record is handed to every listener that wants it. Each of them answers for it: its sink has the record, or the
// record goes to the sink's spool in the batch that saves the position, or a newer record of the object is in line and
// unanswered, or the sink is recorded as absent (I1). A position is saved when every record before it in its stream has
// all its answers (I2). Records stay in memory until they are saved; the window (package line) bounds them, so a state
// that cannot be saved stops the line (I6).
//
// # Full snapshots
//
// A sink's subscription says that it takes a stream. A new subscription, a lost log and a request each become a pending
// snapshot, saved before anything follows from it, and paid by the snapshot.end that the sink acknowledges. A pending
// snapshot that is noted again gets a new generation, which a running snapshot does not pay. A pending snapshot
// remembers the key up to which the sink has acknowledged the snapshot, so that a crash loop ends.
//
// # Sinks that are late, stopped or absent
//
// A sink that is not open after five seconds does not delay the start: its queue fills, and a full queue does what
// queue.full says. A sink that fails for
// good stops alone and is opened again after one to ten minutes (package delivery). A stopped sink that others wait for
// leaves the line (absent.go): an Absence per stream is saved, the trackers excuse it, and its queue is emptied. From
// then on each commit notes the deletes that it misses. When it is open again, every stream gives it a gap, those
// deletes, and a full snapshot.
//
// # Decisions
//
//   - A tracker per stream, not one for all: a stream that waits for one sink holds up no other stream's position.
//   - Frames and gaps are records of the stream, not a side channel: a consumer of one subject sees where its gap is.
//   - The missed deletes of an absent sink are kept in the state. Its own log need not reach back that far, and a copy
//     of the inventory would stall commits.
//   - A reconcile under way is noted in the saved position, because it moves the inventory ahead of the position.
//   - Bookmarks alone are saved two seconds later, so that hundreds of quiet streams cost one commit every other
//     second.
//   - A sink that was fenced by another writer is not opened again before the next start: the two would end each other
//     in turn.
//   - Sources see the line as an Inlet: only the pipeline may ask the state what a sink has missed when a stream is
//     drained.
//   - A run stands on participants (sources, line, listeners), owing (what sinks are owed and miss) and opener (how
//     sinks are opened), each embedded in the next, so that the compiler holds the direction, as in package delivery.
package pipeline
