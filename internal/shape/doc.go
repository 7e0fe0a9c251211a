// Package shape decides what of a stream's records goes on to the sinks, and in which form: the operations, the filter,
// then the cuts and hashes that the user asked for.
//
// Decisions:
//
//   - Records are shaped before the line, not in each encoder: what is not in a record can be in no queue, spool, log
//     or sink. An object that cannot be redacted goes on with its identity only.
//   - Rules belong to a resource, not to a sink, so one form serves all sinks and the kept objects.
package shape
