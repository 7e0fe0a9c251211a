// Package change holds the values that travel down the line: one Record is one delta of one object on its way from the
// API server to the sinks. It knows no clock, no goroutine and no I/O, and imports only the standard library.
package change
