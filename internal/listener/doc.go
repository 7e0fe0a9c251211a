// Package listener is one sink's life: what the sink was told, what it gets next, and how it goes on after a crash.
//
// What is saved of a sink is the fold of that sink's own log, as far as a mark. Everything else follows from this
// sentence. Sinks share nothing, so no sink waits for another one. A sink that was away, is new or is slow is the same
// case as a restart: it goes on from its own position.
//
// # What is saved
//
//	mark       a place in the sink's own log
//	rows       by object: the history, uid and version that the sink was told last, and whether that was its end
//	places     by resource and namespace: up to which version the sink was given everything, and the comparison that
//	           is under way; one place, Others, stands for all namespaces that have none of their own
//
// The records that wait for the sink on disk have rows and places of their own, on top of these: the sink is offered
// what comes after them. Once read from disk and written, they become part of the fold. No key contains a stream. So a
// change of the configured namespaces moves no row, and says nothing of what was told.
//
// # The rules
//
// The test of the package plays them in random worlds. It takes out each rule with a name in brackets, but for asof,
// and fails unless its judge notices.
//
//   - A change is told unless the sink's row is as new [known]. A version above all that the sink was told of the
//     namespace needs no look-up, so a sink that keeps up needs none.
//   - What a sink has acknowledged is a prefix of what it was given, so its position follows from the last change.
//     Several changes can share a version, so that position is one below the change [below]. A bookmark completes it.
//   - A sink that is opened folds its log after the mark into its rows [fold] and its places [frames]. Records on disk
//     that the log has are not sent again [spooltail]. Only the first batch on disk can be in the log. If the log has
//     anything else, it has gone on without the disk, and what is on disk is given up [otherwise].
//   - A watch serves several sinks. It begins at the lowest of their positions [lowest]; the others skip by version. A
//     stream of all namespaces begins at the lowest of its places [scope]. A change is skipped if the position of its
//     namespace is at its version or above [parts].
//   - A sink is told of a gap if the server has forgotten its position, or serves another history [gap]. Its places
//     move to the server's version, and are compared. Versions of two histories say nothing of each other
//     (checkpoint.Point).
//   - A comparison judges a list against the rows. What is newer than the position is left to the watch [ahead]. If the
//     sink has another object of the same name, it is told its delete first, one version below [other, another]. A row
//     that is not listed is a suspect until the position has passed the version of the list [suspects]; then its object
//     is gone, unless something newer was told [newer].
//   - A delete that a comparison found has the version of the row [asof]. The object may exist, outside the selection.
//     If it returns unchanged, it is told again with that version, and the order of the log decides.
//   - A comparison that was interrupted begins again [resume], and is announced anew if other namespaces are configured
//     now [torn]. The rows say what was told already. Its end becomes durable after all before it, which the sink sees
//     to [order]. A requested comparison begins when no other one is under way.
//   - A place that no stream reads any more gets its records from disk, and then one gap of reason left. From then on a
//     comparison is under way there, which goes on when a stream reads the place again.
//   - A sink with a watch of its own joins the common watch only if that has brought nothing that the sink lacks
//     [join].
//   - A log that has lost its end is folded anew from its beginning if it can be read whole [recall].
//
// # Tombstones
//
// A tombstone is the row of an object that is gone. It is needed for as long as something older than the delete can
// come: from a watch that began before it, or from the list of a comparison. So it is dropped when the position of its
// namespace has passed it, and no comparison is under way there [tombs].
//
// Folding commutes over the partitions of a log: rows and places take the higher value. As a rule an object is in one
// partition, so nothing older than its tombstone is read after it. If labels choose topics, it may be in several.
// Frames may be in other partitions than objects, so a comparison's end can be read before its objects.
//
// A place knows the highest version that was told of it, even beyond the position (High). A comparison reads no older
// list [high], which would bring back objects whose delete was told.
//
// Follower, Judge and JudgeMissing are pure: no clock, no goroutine, no lock, no I/O. A Listener has the goroutine,
// Intake and Books have the locks.
package listener
