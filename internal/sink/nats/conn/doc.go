// Package conn is a connection to NATS servers, for the sink that writes into JetStream: the client library's, with
// replies to numbered subjects, and a socket that ends with its context.
//
// Decisions:
//
//   - The library reconnects, and keeps nothing to send again: what was under way when a connection broke is for the
//     sink to find out. The library's own requests do not notice that their connection is gone, so they are not used.
package conn
