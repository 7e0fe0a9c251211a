package telemetry

import (
	"math"
	"time"
)

// The API server answers a watch out of a ring of each resource's newest events, which begins with smallestRing of them
// and doubles, up to largestRing, while its oldest event is younger than leastHistory (k8s.io/apiserver,
// pkg/storage/cacher/watch_cache.go). Events are not in a ring but read from etcd, which kube-apiserver compacts every
// five minutes (--etcd-compaction-interval). After a restart of the API server its rings are empty, which nobody can
// foresee: so all that is made of this is an estimate.
const (
	smallestRing = 100
	largestRing  = 102400
	leastHistory = 75 * time.Second
	mostHistory  = 5 * time.Minute // where it is quiet
)

// historyOf is how far back an API server can tell at least what changed of a resource that changes so often a second.
func historyOf(perSecond float64) time.Duration {
	size := float64(smallestRing)
	for size < largestRing && size < perSecond*leastHistory.Seconds() {
		size *= 2
	}
	if size >= perSecond*mostHistory.Seconds() {
		return mostHistory
	}
	return time.Duration(size / perSecond * float64(time.Second))
}

// paceSpan is how long changes are counted, so that the changes that a watch brings at once after a restart, a ring at
// most, are not taken for a pace. In as much time without changes the pace is taken for half of what it was.
const paceSpan = time.Minute

// pace is how often a resource changes, by the changes that were read.
type pace struct {
	began time.Time // of the span that is counted
	count float64
	last  float64 // a second, in the spans before
}

// note counts a change.
func (p *pace) note(at time.Time) {
	if p.began.IsZero() {
		p.began = at
	}
	if at.Sub(p.began) >= paceSpan {
		*p = pace{began: at, last: p.perSecond(at)}
	}
	p.count++
}

// perSecond is the pace at a time.
func (p *pace) perSecond(at time.Time) float64 {
	took := max(at.Sub(p.began), paceSpan)
	faded := p.last * math.Exp2(-float64(took-paceSpan)/float64(paceSpan))
	return max(p.count/took.Seconds(), faded)
}
