// Package objecttype reads from the API server what its objects look like, and narrows that by the rules of a resource
// and of a sink.
//
// Decisions:
//
//   - A document of the server is large (megabytes), and a hash in its index says whether it has changed. A run keeps
//     one document and the index (documents); a command asks for each document once (Schemas).
package objecttype
