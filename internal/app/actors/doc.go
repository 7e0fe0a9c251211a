// Package actors receives the API server's audit webhook for the process, and tells each run who asked for changes.
//
// Decisions:
//
//   - The port outlives the runs, as the status server's does. A standby answers there, too: an API server that reaches
//     it through a Service is told to send the batch again, over another connection.
package actors
