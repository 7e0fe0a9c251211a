// Package disk is what the state, the dead letters and the sink for files need of a file system: names that survive a
// power failure, and free space.
package disk
