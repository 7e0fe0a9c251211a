// Package listener is one sink's life: what the sink was told, what it is given next, and how it goes on after a crash.
//
// What is saved of a sink is the fold of that sink's own log, as far as a mark. Everything else follows from this
// sentence. Nothing is shared between sinks, so no sink waits for another one, and a sink that was away, is new or is
// slow is the same case as a restart: it goes on from its own position.
//
// # What is saved
//
//	mark       a place in the sink's own log
//	rows       by object: the history, uid and version that the sink was told last, and whether that was its end
//	places     by resource and namespace: up to which version the sink was given everything, and the comparison that
//	           is under way; one place, Others, stands for all namespaces that have none of their own
//
// What waits for the sink on disk lies on top of that, in rows and places of its own: the sink is given what comes
// after it. What is read from there, and written, becomes part of the fold. No key names a stream. So a change of the
// configured namespaces moves no row, and says nothing of what was told.
//
// # The rules
//
// The test of the package plays them in random worlds. It takes each of them out, by the name in brackets, and fails
// unless its judge notices.
//
//   - A change is told unless the sink's row is as new [known]. A version above all that the sink was told of the
//     namespace needs no look at the rows, so a sink that keeps up needs none.
//   - What a sink has acknowledged is a prefix of what it was given, so the version of the last change is its position.
//     Several changes can share a version, so the position of a change is one below it [below]. Bookmarks complete it.
//   - A sink that is opened folds its log after the mark into its rows [fold] and its places [frames]. What of the disk
//     the log has is not sent again [spooltail]. Only the batch that was read last can be there. Where the log has
//     anything else, it went on in another way, and what is on disk is given up [otherwise].
//   - A watch serves several sinks. It begins at the lowest of their positions [lowest]; the others skip by number. A
//     stream of all namespaces begins at the lowest of its places [scope]. A change is skipped if the position of its
//     namespace is at its version or above [parts].
//   - A sink whose position the server has forgotten, or is of another history, is told of a gap [gap]. Its places
//     become the server's version, and are compared. A version counts within its history only (Point).
//   - A comparison judges a list against the rows. What is newer than the position is left to the watch [ahead]. Of
//     another object under the same name the sink is told the delete first, one version below [other, another]. A row
//     that is not listed is a suspect until the position has passed the version of the list [suspects]; then its
//     object is gone, if nothing newer was told [newer].
//   - The delete that a comparison found has the version of the row [asof]. The object may be there, and have left the
//     selection: if it returns unchanged, it is told again with that version, and the log's order says what it is now.
//   - A comparison that was interrupted begins again [resume], announced anew where other namespaces are configured
//     now [torn]. The rows say what is told already. Its end is told when all before it is durable, which is for the
//     sink to keep [order]. One that is asked for begins when no other one is under way.
//   - Of a place that no stream reads any more the sink is given what waits on disk, and then told a gap of reason
//     left, once. A comparison is under way there from then on, which goes on when a stream reads it again.
//   - A sink with a watch of its own joins the common one only when that has brought nothing that the sink lacks
//     [join].
//   - A log that has lost its end is folded anew from its beginning, where it can be read whole [recall].
//
// # Tombstones
//
// A row may be one of an object that is gone. It is needed for as long as something older than the delete can come: a
// watch from a position before it, or a list that a comparison reads. So it is dropped when the position of its
// namespace has passed it, and no comparison is under way there.
//
// Folding commutes over the partitions of a log: rows and places take the higher value. As a rule an object is in one
// partition, so nothing older than its tombstone is read after it. Where labels choose topics, it may be in several.
// Frames may be in other partitions than objects, so a comparison's end can be read before its objects.
//
// A place knows the highest version that was told of it (High), also beyond the position. A list that a comparison
// judges is no older [high]: it would bring back what was told to be gone.
//
// Follower, Judge and JudgeMissing are pure: no clock, no goroutine, no lock, no I/O. A Listener has the goroutine,
// Intake and Books have the locks.
package listener
