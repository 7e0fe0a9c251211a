// Package delivery brings records to one sink: a Listener takes them from its backlog, encodes and writes them, and
// answers for them in line. It opens the sink, also again after an error, and finds out at each opening what of the
// records the sink's log holds. One goroutine at a time opens or runs a listener; the line and the committer use its
// backlog under intake.mu. The table in state.go lists a sink's states.
//
// # The sink's log after a crash
//
// A sink is opened at its mark and gives the ids after it, the tail, one by one. A tail may be long: others write to
// a shared log, and a mark may hang back while records wait on disk. So it is folded while it is read, and what is
// saved or another cluster's leaves nothing in memory (package redo, I6). The listener skips those records when the
// watch or a reconcile brings them again, and the mark stays until the tail is passed. Nothing older than what the log
// holds of an object is written after it, since a log may be compacted.
//
// In one run a log is read as an earlier process' once, and what was compared with it stays compared. So that reading
// has to be whole: a sink whose Open cannot keep out what a killed process had sent says so when it comes
// (sink.LateError), at the next Write or when it is opened again. What may be in the log besides is the batch that
// failed, whose ids the listener knows. The run ends with what is saved, and the next one reads the log as after a
// crash.
//
// Where several exporters could lead, a sink is open only when this one has proven, after Target.Open, that it still
// leads (openTarget). It may have slept, or not know that another one leads: then it takes the sink from that one, and
// reads that one's records as its own tail, behind which it would write older ones. The proof is a write that the next
// leader's claim refuses (statelog.Log.Prove). So either the claim came first, and nothing is written, or the next
// leader opens the sink later than this one, and finds in the log all that this one writes.
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
// # Decisions
//
//   - Sinks give ids and return no list. A list of our ids is short as a rule, but only the pipeline knows what is
//     saved.
//   - Late words end the run. To read the log anew within it was tried: what had been taken from the tail by then, and
//     whom reconciles had been told of, belonged to another reading, and deletes were told twice or not at all.
//   - A mark carries ids, not a version per stream. Versions are shorter, and say nothing about what a reconcile found,
//     records that share a version, partitions, and sink-only objects.
//   - A rejected record is replaced by a gap record of reason policy, and kept as a dead letter before that (I1).
//     Stopping would let one oversized object end an audit trail; `oversize: reject` chooses that.
//   - The gap for a rejected record names a long name by its hash (change.NoteOf). Leaving the name out would give all
//     such gaps one key; cutting it off would give two objects one.
//   - A letter is sent again by the running exporter in the sink's own queue. A command that writes into the log itself
//     would be a second writer (I10). A superseded letter is kept unless somebody insists, since it would lead
//     consumers that keep states back in time (I3).
//   - What a log or a spool holds of a stream that is not configured makes its sink absent from that stream
//     (unread.go). To keep the ids themselves would spare the full snapshot when the stream is back, and would need a
//     life cycle of its own beside marks and carried ids.
//   - Records from disk are shaped again by today's rules (shapeAgain), since I9 holds for whatever leaves.
//   - Where a sink is in its life is one pure type, not flags that are set where they are needed. One value of six was
//     refused: a sink that is being opened may be halted and away, too.
//   - A Listener stands on three types, each embedded in the next: intake (what waits, under its lock), onDisk (what of
//     that is on disk) and past (what was left in the sink's log). The compiler holds the direction: what is below
//     cannot call what is above. Fields that point at each other would allow that, and one type of all would hide it.
package delivery
