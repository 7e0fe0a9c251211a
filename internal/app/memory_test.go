package app

import (
	"context"
	"sync"
	"testing"

	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/pipeline"
)

// TestI6TheMemoryLimitLeavesRoomForStreams that run, however many come and go at once, and takes it back.
func TestI6TheMemoryLimitLeavesRoomForStreams(t *testing.T) {
	const queues, streams = 5 << 20, 100
	var limit int64
	m := &memory{set: func(bytes int64) { limit = bytes }}
	gone := m.ofQueues(&config.Config{Sinks: []config.Sink{{Queue: config.Queue{Bytes: 3 << 20}}, {Queue: config.Queue{Bytes: 2 << 20}}}})
	if want := int64(besideQueues + queues); limit != want {
		t.Fatalf("without streams: got %d bytes, want %d", limit, want)
	}
	end := make(chan struct{})
	var begun, ended sync.WaitGroup
	begun.Add(streams)
	for range streams {
		source := m.of(pipeline.Source{Run: func(context.Context, []*listener.Intake) bool {
			begun.Done()
			<-end
			return true
		}})
		ended.Go(func() {
			if over := source.Run(t.Context(), nil); !over {
				t.Error("want the source's own end")
			}
		})
	}
	begun.Wait()
	if want := int64(besideQueues + queues + streams*perStream); limit != want {
		t.Errorf("with %d streams: got %d bytes, want %d", streams, limit, want)
	}
	close(end)
	ended.Wait()
	if want := int64(besideQueues + queues); limit != want {
		t.Errorf("when all are over: got %d bytes, want %d", limit, want)
	}
	if gone(); limit != besideQueues {
		t.Errorf("without queues: got %d bytes, want %d", limit, besideQueues)
	}
}

// TestTheMemoryLimitOfTheEnvironmentWins over ours.
func TestTheMemoryLimitOfTheEnvironmentWins(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "1GiB")
	m := limitMemory()
	if m.set != nil {
		t.Errorf("got %+v, want no limit of ours", m)
	}
	m.add(3<<20, 1)
}
