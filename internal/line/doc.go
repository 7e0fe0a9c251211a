// Package line is the one way from sources to sinks. It numbers records, hands each to the listeners that want it, and
// knows what of them is delivered and may be saved. It has one lock, Line.mu, and no goroutine and no I/O.
//
// The line sees a listener as a Member: facts of its sink, and four small interfaces by what they are asked for. Gate
// is before a record goes in line, Queue is on its way, Disk is asked when positions are saved, and Patience when
// somebody has waited too long. A listener sees its place in line, its Seat.
//
// Under the lock are pure types: the trackers of each stream (streams, progress), the room for what is not saved
// (window), and for each listener the one mark at which a crash would find its sink (resumePoint). What a sink's log
// holds beyond the saved state is in Recovery, which has a lock of its own, since listeners read it while they write.
//
// # Decisions
//
//   - One interface of all that is asked of a listener would have ten methods, and be the listener again. A single one
//     of three would hide that saving a position asks for something else than pushing a record.
//   - The line saves nothing. Advance gives batches to the committer, and Saved takes them back. A line that knows the
//     store would hold its lock during I/O one day.
//   - A listener is asked once about each record (Enter), also about one that it does not want: the record's time
//     may say that its oldest one is too old, and the end of a reconcile is everybody's.
package line
