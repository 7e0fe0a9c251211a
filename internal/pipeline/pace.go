package pipeline

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// A collection costs the same however little garbage there is, and where little is alive Go begins one with every 4
// MiB: a hundred a second at full speed, a fifth of all CPU time. So a busy process lets garbage grow for collectEvery,
// up to maxGarbage, beyond which memory costs more than it saves: it is out of the processor's caches.
const (
	collectEvery  = 100 * time.Millisecond
	maxGarbage    = 24 << 20
	usualPercent  = 100     // Go's own
	percentRaster = 50      // to set it stops the world, which not every collection is worth
	leastHeap     = 4 << 20 // Go collects no heap that is smaller, and applies the percentage to this size, too
)

// collectorPercent is the GOGC for a process that has so many bytes alive and makes so much garbage a second.
func collectorPercent(live uint64, garbage float64) int {
	garbage = min(garbage*collectEvery.Seconds(), maxGarbage)
	percent := int(100*garbage/float64(max(live, leastHeap))) / percentRaster * percentRaster
	return max(usualPercent, percent)
}

// pacer sets the collector's percentage after each collection.
type pacer struct {
	samples []metrics.Sample // bytes alive, bytes allocated
	at      time.Time
	before  uint64 // bytes allocated until at
	percent int
}

func newPacer() *pacer {
	return &pacer{
		samples: []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}},
		at:      time.Now(), percent: usualPercent,
	}
}

// mortal is what the next collection finds dead.
type mortal struct{ _ *mortal }

// await is told of the next collection by the runtime, which runs cleanups in goroutines of its own.
func (p *pacer) await() { runtime.AddCleanup(new(mortal), (*pacer).collected, p) }

func (p *pacer) collected() {
	metrics.Read(p.samples)
	live, allocated, now := p.samples[0].Value.Uint64(), p.samples[1].Value.Uint64(), time.Now()
	percent := collectorPercent(live, float64(allocated-p.before)/now.Sub(p.at).Seconds())
	p.before, p.at = allocated, now
	if percent != p.percent {
		debug.SetGCPercent(percent)
		p.percent = percent
	}
	p.await()
}
