// Package verify compares what a sink's log says with what a cluster has. It folds the log by key, as a consumer does,
// and does no I/O.
package verify
