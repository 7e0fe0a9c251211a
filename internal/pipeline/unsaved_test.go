package pipeline

import (
	"testing"
	"time"
)

// TestI2WhatHoldsThePositionIsKnown: it is the oldest record that some sink lacks, whatever the others have, and not
// what waits on disk.
func TestI2WhatHoldsThePositionIsKnown(t *testing.T) {
	slow, other := &memory{}, &memory{}
	r := newRig(t, spooling("slow", slow, 4), sinkOf("other", other))
	release := other.hang()
	slow.hang()
	sets, _ := r.follow()
	began := time.Now()
	if err := r.life(func(line *Inlet) {
		set := <-sets
		if got := set.Unsaved(); len(got) != 0 {
			t.Errorf("before the first record %v waits", got)
		}
		for i := 1; i <= 10; i++ {
			rec := update(pods(), "a", i)
			rec.Received = began.Add(time.Duration(i) * time.Second)
			r.push(line, rec)
		}
		if got := set.Unsaved()["pods"]; !got.Equal(began.Add(time.Second)) {
			t.Errorf("what waits was received at %v, want %v", got, began.Add(time.Second))
		}
		release()
		r.drain(line, pods()) // to the one sink, and to disk
		if got := set.Unsaved(); len(got) != 0 {
			t.Errorf("%v waits, and all is saved", got)
		}
	}); err != nil {
		t.Fatal(err)
	}
}
