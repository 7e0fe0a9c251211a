// Package conn is a connection to NATS servers, for the sink that writes into JetStream: the client library's, with
// replies to numbered subjects, a socket that ends with its context, and an outbox that writes past the library.
//
// Decisions:
//
//   - The library reconnects, and keeps nothing to send again: what was under way when a connection broke is for the
//     sink to find out. The library's own requests do not notice that their connection is gone, so they are not used.
//   - Messages are written into the library's socket, past the library (Outbox), many with one system call. The
//     library copies each value and builds its headers from a map. A mutex keeps the two writers apart. A socket with
//     TLS or a websocket is left to the library. TestLibraryWritesWholeOperations holds what is assumed of it.
package conn
