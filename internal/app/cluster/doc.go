// Package cluster is the API server that an exporter reads: how it is reached, who it is, and which of its streams are
// meant by a name.
//
// Decisions:
//
//   - The identity of a cluster is checked here for everybody: a state is tied to it with Claim, and records of another
//     cluster in a log are told with Judge. Sinks know neither names nor uids.
//   - The process's logger is made here, because client-go's own lines go through it.
package cluster
