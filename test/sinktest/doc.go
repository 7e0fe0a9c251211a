// Package sinktest is the conformance suite that every sink passes: what the contract in package sink promises, as
// tests. A sink's own test hands it a Harness:
//
//	func TestConformance(t *testing.T) {
//		sinktest.Run(t, sinktest.Harness{New: newEnv})
//	}
//
// The suite speaks to a sink only as the pipeline does, and judges it by what an independent reader finds in the log.
package sinktest
