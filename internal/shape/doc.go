// Package shape decides what of a stream's records goes on to the sinks, and in which form: the operations, the filter,
// then the cuts and hashes that the user asked for.
//
// Decisions:
//
//   - Records are shaped before the line, not in each encoder: what is not in a record can be in no queue, spool, log
//     or sink. An object that cannot be redacted goes on with its identity only.
//   - Where rules depend on an object's labels, what is on disk goes through all that may have been its own after a
//     change of rules (NewToday): the labels may be cut there.
//   - The rules of a resource make one form, which all sinks share, and the kept objects. A sink's own rules come after
//     them, when its records leave its queue (Shape.Narrowed): to shape before the queue was refused, since each sink
//     would hold its own bytes, and what waits on disk would have the rules of another day. So a sink can only see
//     less, and neither ids nor the inventory nor what is found in a log depend on it.
package shape
