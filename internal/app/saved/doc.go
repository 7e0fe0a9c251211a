// Package saved reads the state of an exporter, wherever it is: a running one is asked, and the directory of a stopped
// one is opened. It changes the state of stopped ones only.
//
// Decisions:
//
//   - What changes a state opens it read-only first: a wrong path must neither become a state nor be answered with
//     success.
package saved
