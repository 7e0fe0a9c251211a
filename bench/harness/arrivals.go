package harness

import (
	"strings"

	"math"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Arrivals is when each version came. Its zero value is ready.
type Arrivals struct {
	mu sync.Mutex
	at map[string]time.Time
}

// Note notes that a version has come. Only its first arrival counts.
func (a *Arrivals) Note(version string) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.at == nil {
		a.at = map[string]time.Time{}
	}
	if _, twice := a.at[version]; !twice {
		a.at[version] = now
	}
}

// NoteMessage notes the version of a message of the exporter.
func (a *Arrivals) NoteMessage(m jetstream.Msg) {
	// The id is cluster/resource/namespace/name/uid/version/op.
	if parts := strings.Split(m.Headers().Get("kubecdc-id"), "/"); len(parts) > 2 {
		a.Note(parts[len(parts)-2])
	}
}

// Of is when the version came.
func (a *Arrivals) Of(version string) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at[version]
}

// Have says whether all of them came.
func (a *Arrivals) Have(versions map[string]time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for version := range versions {
		if _, there := a.at[version]; !there {
			return false
		}
	}
	return true
}

// Latencies are those of all versions, sorted, in milliseconds. An arrival before the answer to the write is none.
func (a *Arrivals) Latencies(acknowledged map[string]time.Time) []float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []float64
	for version, at := range acknowledged {
		all = append(all, max(0, float64(a.at[version].Sub(at))/float64(time.Millisecond)))
	}
	slices.Sort(all)
	return all
}

// Percentile is the smallest value that so many percent of the sorted values do not exceed.
func Percentile(sorted []float64, percent float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, int(math.Ceil(percent/100*float64(len(sorted))))-1)]
}
