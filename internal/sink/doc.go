// Package sink holds the contract between the pipeline and the places that records are delivered to. Package sinktest
// is the suite that every implementation passes.
package sink
