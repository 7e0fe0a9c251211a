package listener

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// TestALetterThatWaitsForRoomIsAnsweredWhenItsSinkStops: otherwise whoever sends it again waits for nothing.
func TestALetterThatWaitsForRoomIsAnsweredWhenItsSinkStops(t *testing.T) {
	config := &Config{Observer: NopObserver(), Work: func(bool) {}}
	i := newIntake(&Sink{Name: "a", Queue: fifo.Limit{Bytes: 1, Records: 1}}, config, &Numbers{})
	i.follower = NewFollower(&checkpoint.Saved{}, i.ids)
	letter := func() *change.Record {
		rec := podRecord(change.Updated)
		rec.Replay = &change.Replay{Done: func(string, error) {}}
		return rec
	}
	must(t, i.Push(t.Context(), letter()))
	answer := make(chan error)
	go func() { answer <- i.Push(t.Context(), letter()) }()
	i.leave()
	if err := <-answer; err == nil {
		t.Error("a letter that waited for room was dropped without an answer")
	}
}
