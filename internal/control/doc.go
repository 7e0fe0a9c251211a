// Package control is what an operator asks of a running exporter, over its HTTP port, and the client that the commands
// ask with:
//
//	POST /snapshot            a full snapshot of some streams, for one sink or for all
//	GET  /snapshot            the snapshots that are owed and not delivered yet
//	POST /snapshot/steer      stops, pauses or resumes some of those
//	GET  /inventory           what the sinks have, one JSON object per line
//	GET  /checkpoint          the saved state, as exporter checkpoint show prints it
//	POST /deadletter/replay   dead letters, to be sent to their sinks again
//
// Only a loopback peer that shows the token of the state directory is answered. ReadState and Find answer the same
// questions from a stopped exporter's state. A command finds the process by its state directory: the file address names
// it, and counts only with the process id that the holder of the lock wrote.
//
// Decisions:
//
//   - Loopback and a token. A proxy on the same host cannot be told from a local process, so a question shows a token
//     from the state directory: whoever may read that may read the state anyway. A Unix socket says the same, but not
//     on every volume.
//   - Both ends of a connection must be loopback addresses: the proxy of a service mesh hands on other hosts'
//     connections.
//   - A request that changes something needs a body declared as JSON, which no web form can send; Origin and a proxy's
//     headers are refused (DNS rebinding, web pages).
package control
