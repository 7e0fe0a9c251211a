package app

import (
	"context"
	"os"
	"runtime/debug"
	"sync"

	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/pipeline"
)

const (
	// besideQueues is what the process needs beside full queues, in bytes, with room for the collector to be lazy in.
	besideQueues = 80 << 20
	// perStream is what a stream needs beside that, in bytes: a watch with its buffers, the Reflector, a decoder, its
	// position. Each of 2,500 quiet ones had 83 KiB (go run ./bench/idle -resources 2500, compared with 100). Twice as
	// many leave the collector its room.
	perStream = 160 << 10
)

// memory is the soft limit at which the garbage collector works harder, for when queues are full (I6). They hold as
// many bytes, and streams come and go, so the limit is never below what is in use: a collector that cannot get below
// its limit takes half of the processors for nothing.
type memory struct {
	set    func(limit int64) // nil is no limit of ours
	queues int64             // bytes that all of them hold

	mu      sync.Mutex // guards the following, and is held while the limit is set
	streams int
}

// limitMemory sets the limit of a process without streams. GOMEMLIMIT in the environment wins.
func limitMemory(cfg *config.Config) *memory {
	m := &memory{}
	for i := range cfg.Sinks {
		m.queues += int64(cfg.Sinks[i].Queue.Bytes)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		m.set = func(limit int64) { debug.SetMemoryLimit(limit) }
	}
	m.add(0)
	return m
}

// of makes room for a stream while its source runs.
func (m *memory) of(source pipeline.Source) pipeline.Source {
	run := source.Run
	source.Run = func(ctx context.Context, sinks []*listener.Intake) (over bool) {
		m.add(1)
		defer m.add(-1)
		return run(ctx, sinks)
	}
	return source
}

// add is told of streams that have come, or gone. Its cost does not depend on how many there are.
func (m *memory) add(streams int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.streams += streams
	if m.set != nil {
		m.set(besideQueues + m.queues + int64(m.streams)*perStream)
	}
}
