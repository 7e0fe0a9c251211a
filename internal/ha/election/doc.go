// Package election says which of several exporters leads. They share a Lease of the API server, by the rules of
// client-go's leaderelection.
//
// A Lease is a hint. Its holder may be paused, or cut off, and learn much later that another one leads. What keeps two
// leaders apart is the log of the state, whose claim fences the former leader before the next one reads what is saved,
// and the sinks: Kafka fences, and JetStream refuses by sequence. So a leader that cannot renew its Lease goes on:
// while the API server is away, nobody else can take over either, and if only this member is cut off, the next leader's
// claim ends its term.
//
// Decisions:
//
//   - A term ends when the member sees another holder, not when a renewal fails.
//   - A term begins only with an answer of the API server that is newer than the wish to lead. A member that was fenced
//     while the API server was away does not fence its successor.
//   - A holder that reaches no broker asks the others in an annotation of the Lease, and leaves it to one that answers
//     in another. To give it up unasked would pass the Lease around for as long as a broker is away. A channel between
//     the members would need addresses and rights, and the Lease is there.
//   - A standby asks up to four times a second, to see soon that a Lease was released. The holder writes five times in
//     the length of a Lease.
//   - Tasks are placed by a pure function of what everybody sees (Assign), not by a leader that hands them out: that
//     would be one more thing to elect. Who has a task keeps it. Rendezvous hashing alone would leave some exporters
//     with twice the mean.
//   - An exporter is alive while its own Lease changes, by the clock of who looks. multicluster-runtime compares the
//     time in the Lease with its own clock.
//   - An exporter says which tasks it cannot have: those that it could not begin, has given up, or leaves. A task is
//     given to somebody else then, and not to nobody.
//   - client-go's LeaderElector has neither of these, and brings a client for each type of the API with it, which take
//     10 MiB of memory and 15 MB of the binary.
//   - Requests go over HTTP/1.1: one that times out takes its connection with it. On HTTP/2 all others of a dead
//     connection would wait with it for up to 45 seconds.
//   - The Lease is a RESTClient's own, not the one of client-go's typed clients, which cannot note what the members
//     share.
package election
