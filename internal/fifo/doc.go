// Package fifo orders records and holds them until a listener takes them. It plays the part of client-go's RealFIFO
// and of processorListener's pendingNotifications (tools/cache, the_real_fifo.go and shared_informer.go), with a bound
// and a disk behind it.
//
// It is pure: no clock, no goroutine, no lock, no I/O. Time comes in with the records or as an argument. Package
// pipeline owns the locks, and reads and writes the disk.
package fifo
