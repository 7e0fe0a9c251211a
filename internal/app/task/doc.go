// Package task runs leadership: the Lease, the log of the state, takeover, and standing by. A task is what one exporter
// at a time does: all streams, with that log and the identities that they have in brokers.
//
// Decisions:
//
//   - A Term ends when another member holds the Lease, when a sink or the log of the state is another's, when this
//     member reaches no broker and another one does (cutoff.go), and when a sink was read too early (sink.LateError).
//     The Lease alone does not decide who writes: a paused leader finds out late, and the brokers refuse it before that
//     (I10).
//   - Whenever a leader has opened a sink, and before it writes there, it writes to the log of the state (Term.Prove),
//     which the next leader's claim refuses. Otherwise a paused leader that wakes up could take a sink from the next
//     one, and read that one's records as its own. A look at the Lease would not do, since any time may pass between
//     that and a write. So an opening waits for the broker of the log.
//   - The log of the state counts for more than the state directory, unless nobody else has led since (takeover.go). A
//     rule that compared times would trust the clocks of two hosts.
//   - A member that is stopped just when it is fenced gives the Lease back, asks who holds it, and ends well if another
//     member does. An exit code of 1 would say that something was left undone; the next leader does it. It waits for
//     a standby to take over as long as a Lease lasts.
//   - A resource goes from one task to another by what both logs of the state say, and by no third place (moves.go).
//     Who has it gives it away when its sink is open: nobody else writes there then, and all that the sink's log says
//     of it is in the state. The protocol is played in moves_test.go, with each of its rules left out.
//   - The new one never takes by force. An exporter with an older configuration would take it back, and so on for as
//     long as a rolling update lasts.
//   - A member stands by with its directory reserved and its address served. A process that only waited would look dead
//     to probes, and commands would find no answer.
//   - A command that is run beside a standby is told who leads, and is not passed on. Patroni and Vault pass such a
//     request to the leader, over a port that other hosts reach and with certificates for it. A leader answers over
//     loopback alone, to those who can read its directory (package control). With an address in the Lease, who may
//     write the Lease would choose where an operator's questions and token go. kubectl exec has the cluster's own
//     rights for that.
package task
