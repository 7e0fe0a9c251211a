// Package usage tells a mistake in the command line or the configuration from what fails while running. It knows no
// clock, no goroutine and no I/O.
package usage
