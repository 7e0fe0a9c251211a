// Package sink holds the contract between the pipeline and the places that records are delivered to, and what
// implementations have in common. Package sinktest is the suite that every one of them passes.
package sink
