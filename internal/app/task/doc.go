// Package task is what one exporter at a time does: all streams, the Lease that says who leads, the log of their state,
// and the identities that they have in brokers.
//
// Decisions:
//
//   - A Term ends when the Lease is lost, and when a sink or the log of the state is another's. The Lease alone does
//     not decide who writes: a paused leader finds out late, and the brokers refuse it before that (I10).
//   - The log of the state counts for more than the state directory, unless nobody else has led since (takeover.go). A
//     rule that compared times would trust the clocks of two hosts.
//   - A member stands by with its directory reserved and its address served. A process that only waited would look dead
//     to probes, and commands would find no answer.
package task
