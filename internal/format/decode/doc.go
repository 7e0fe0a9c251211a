// Package decode reads back what package encode wrote: which object a message speaks of, in which version, and its
// state. It knows no clock, no goroutine and no I/O.
package decode
