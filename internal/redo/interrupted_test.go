package redo

import (
	"testing"
)

// TestI4WhatAPositionHasPassedOverIsNotSettledByAnotherReconcile: a comparison has passed over a gap, and is followed
// by another history, or the end of the resource, before it is over. What one log alone has of the gap may still be
// gone without a word.
func TestI4WhatAPositionHasPassedOverIsNotSettledByAnotherReconcile(t *testing.T) {
	state, stream := comparing(), pods()
	state.position = state.position.Interrupt()
	if settled, err := (Ledger{State: state}).Settled(update(stream, "b", 5).ID(clusterUID), &stream); settled || err != nil {
		t.Errorf("at %+v what lies in the gap is settled: %t, %v", state.position, settled, err)
	}
	if state.position.GoesOn("") || !state.position.UnderWay() {
		t.Errorf("at %+v the comparison goes on, or none is under way", state.position)
	}
}
