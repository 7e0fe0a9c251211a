package telemetry

import (
	"math"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/listener"
)

// streamState is one stream on /statusz.
type streamState struct {
	State              string    `json:"state"`
	ResourceVersion    string    `json:"resourceVersion"`
	PositionAgeSeconds float64   `json:"positionAgeSeconds"`
	HistorySeconds     float64   `json:"historySeconds"`     // an estimate
	HistoryLeftSeconds float64   `json:"historyLeftSeconds"` // of them
	HeldBy             []string  `json:"heldBy,omitempty"`   // sinks that lag by more than half of the history
	HeldSince          time.Time `json:"heldSince,omitzero"`
	// Sinks are how each sink stands that takes the stream; replaced, never changed.
	Sinks        map[string]takerState `json:"sinks,omitempty"`
	Records      int                   `json:"records"`
	Gaps         int                   `json:"gaps"`
	LastGap      *gapState             `json:"lastGap,omitempty"`
	LastSnapshot *completeSnapshot     `json:"lastSnapshot,omitempty"`
	Snapshot     *snapshotState        `json:"snapshot,omitempty"`
	Trouble

	late      bool                   // it came when the process ran already
	over      bool                   // it has left: nobody sees this
	resource  string                 // as metrics have it
	sign      time.Time              // of life
	confirmed time.Time              // when the saved position that moved first did so last
	counts    map[string]objectCount // by sink
	stream    change.Stream
	given     *snapshotState // read to its end, and after it no other has begun
	pace      pace
	partial   bool // it is of a part of its resource
	uncached  bool // by the API server

	unread    time.Time // since when no watch could be opened; zero where one is open
	outage    Failure   // of the API server, in which it fails; Failed is none
	failed    time.Time // since when the log knows that it fails; zero where it does not
	told      bool      // by a line of its own
	expired   string    // why its history is gone, until the log is told of the gap; "" where it is not
	expiredAt time.Time
	unserved  bool // expired is that a server does not serve the resource

	comparing   bool                             // all sinks are given a snapshot
	corrections int                              // of the comparison that runs, or ran last
	received    map[change.Op]prometheus.Counter // each made when it is needed first
	bytes       prometheus.Counter               // made with the first of them
}

// Failure is why a list or a watch fails.
type Failure byte

// The failures, of which some are outages of the API server.
const (
	Failed      Failure = iota // anything else
	Refused                    // it does not take the credentials
	Unreachable                // nobody answers
	outages                    // ends those
	Expired                    // it has forgotten what changed: a gap follows as a rule
	Unserved                   // it does not serve the resource; another one may, or the stream is about to end
)

// lines are those of the log at its begin and at its end.
func (o Failure) lines() (begins, ends string) {
	if o == Refused {
		return "the API server refuses the credentials; retrying: renew the exporter's token or certificate", "the API server takes the credentials again"
	}
	return "the API server does not answer; retrying", "the API server answers again"
}

func newStreamState(stream change.Stream, late bool) *streamState {
	group := stream.Resource.Group
	isEvents := stream.Resource.Name == "events" && (group == "" || group == "events.k8s.io") // whose watches are read from etcd
	return &streamState{
		State: starting, stream: stream, counts: map[string]objectCount{}, sign: time.Now(), late: late, resource: stream.Resource.String(),
		partial: stream.Namespace != "", uncached: isEvents, received: map[change.Op]prometheus.Counter{},
	}
}

type completeSnapshot struct {
	Reason          change.Reason `json:"reason"`
	Sinks           []string      `json:"sinks,omitempty"` // none is all
	ResourceVersion string        `json:"resourceVersion"`
	change.Counts
	Limits change.Limits `json:"limits,omitzero"`
	Time   time.Time     `json:"time"`
}

// beginSnapshot shows the snapshot; the caller holds mu. Those that begin together are read from one list.
func (s *streamState) beginSnapshot(snapshot *change.Snapshot) {
	is := snapshotState{Reason: snapshot.Reason, Sinks: snapshot.Sinks, Limits: snapshot.Limits, Since: time.Now(), expected: unknownCount}
	is.told = is.Since
	if last := s.Snapshot; last != nil && last.Objects == 0 && last.Reason == is.Reason && last.Limits == is.Limits {
		is.Sinks = append(slices.Clip(without(last.Sinks, is.Sinks)), is.Sinks...)
	}
	for _, c := range s.counts {
		if !c.counted.IsZero() && snapshot.Limits == (change.Limits{}) {
			is.expected = max(is.expected, c.n) // what the sink has that has most
		}
	}
	s.Snapshot, s.given = &is, nil
}

// endSnapshot shows it no more for the sinks, and returns what was shown, nil where nothing was; the caller holds mu.
func (s *streamState) endSnapshot(sinks []string) *snapshotState {
	if s.Snapshot == nil {
		return nil
	}
	given, left := *s.Snapshot, *s.Snapshot
	left.Sinks = without(left.Sinks, sinks)
	if s.given != nil && s.given.Since.Equal(given.Since) {
		given.Sinks = append(slices.Clip(s.given.Sinks), sinks...)
	} else {
		given.Sinks = sinks
	}
	if s.given, s.Snapshot = &given, &left; len(left.Sinks) == 0 {
		s.Snapshot = nil
	}
	return &given
}

// without is all that is not among others.
func without(all, others []string) (left []string) {
	for _, one := range all {
		if !slices.Contains(others, one) {
			left = append(left, one)
		}
	}
	return left
}

// history is how far back the API server can tell what changed of the stream. oldest is since when the sink that lags
// most stands still, zero for none: what came before that says how often the resource changes, since reading may wait
// now. Of a resource of which only a part is read nobody knows how often all of it changes.
func (s *streamState) history(now, oldest time.Time) time.Duration {
	if s.uncached {
		return mostHistory
	}
	if oldest = s.stands(oldest); oldest.IsZero() {
		oldest = now
	}
	whole := historyOf(s.pace.perSecond(oldest))
	if s.partial {
		whole = min(whole, leastHistory)
	}
	return whole
}

// historyLeft is how long, about, a watch can still be opened where the sink stands that lags most. It falls with the
// age of what that has not, and with the time in which nobody could read what has changed.
func (s *streamState) historyLeft(now, oldest time.Time) time.Duration {
	whole, since := s.history(now, oldest), s.stands(oldest)
	if since.IsZero() {
		return whole
	}
	return max(0, whole-now.Sub(since))
}

// stands is since when the stream stands still, for what waits or for what cannot be read; zero where it does not.
func (s *streamState) stands(oldest time.Time) time.Time {
	if oldest.IsZero() || !s.unread.IsZero() && s.unread.Before(oldest) {
		return s.unread
	}
	return oldest
}

// expires notes a failure of which the log is told when it is known what follows, or when that takes long.
func (s *streamState) expires(failure string) {
	if s.expired == "" {
		s.expired, s.expiredAt = failure, time.Now()
	}
}

// noted is that the log knows that it fails.
func (s *streamState) noted() {
	if s.expired, s.unserved = "", false; s.failed.IsZero() {
		s.failed = time.Now()
	}
}

// fails notes the failure, and says whether it is another one than before.
func (s *streamState) fails(err error) bool {
	if s.sign = time.Now(); s.unread.IsZero() {
		s.unread = s.sign
	}
	if s.LastError == shownError(err) {
		return false
	}
	s.State, s.Trouble, s.outage = failing, TroubleOf(err), Failed
	return true
}

// unknownCount is a number of objects that must be counted in the store.
const unknownCount = -1

// show shows how the sinks stand that take the stream.
func (s *streamState) show(views []listener.View, now time.Time) {
	if s.Sinks = nil; len(views) == 0 {
		return
	}
	sinks := make(map[string]takerState, len(views))
	s.ResourceVersion, s.confirmed = "", time.Time{}
	for i := range views {
		v := &views[i]
		sinks[v.Sink] = takerState{
			ResourceVersion: v.Version, AgeSeconds: age(now, v.Moved), Comparing: v.Comparing, Waits: v.Waits, Since: v.Since(),
		}
		if s.ResourceVersion == "" || v.Version != "" && change.CompareVersions(v.Version, s.ResourceVersion) < 0 {
			s.ResourceVersion = v.Version
		}
		if v.Version != "" && (s.confirmed.IsZero() || v.Moved.Before(s.confirmed)) {
			s.confirmed = v.Moved
		}
	}
	s.Sinks = sinks
}

// standing is the state that is shown. A stream that is watched while a sink of it is compared is in its snapshot
// still.
func (s *streamState) standing() string {
	if s.State == watching {
		for _, taker := range s.Sinks {
			if taker.Comparing != "" && !taker.Comparing.Full() {
				return snapshotting
			}
		}
	}
	return s.State
}

// oldest is since when the position of the sink stands still that lags most, zero where none does.
func (s *streamState) oldest() (oldest time.Time) {
	for _, taker := range s.Sinks {
		if !taker.Since.IsZero() && (oldest.IsZero() || taker.Since.Before(oldest)) {
			oldest = taker.Since
		}
	}
	return oldest
}

// recountPause is how often objects are counted, which reads all of them: so that it takes a thousandth of the time.
const recountPause = 1000

// saved is when certainly all is saved that was written before.
const saved = 2 * time.Second

// snapshotState is how far a snapshot is that is being read. It is replaced, never changed.
type snapshotState struct {
	Reason  change.Reason `json:"reason"`
	Sinks   []string      `json:"sinks,omitempty"` // none is all
	Limits  change.Limits `json:"limits,omitzero"`
	Since   time.Time     `json:"since"`
	Objects int           `json:"objects"`           // that were listed
	Percent *int          `json:"percent,omitempty"` // of all; nil is not known

	expected int       // objects in the inventory when it began, unknownCount where nobody had counted them
	told     time.Time // when the log was, or when it began
}

// takerState is how one sink stands with a stream, on /statusz.
type takerState struct {
	ResourceVersion string         `json:"resourceVersion"` // the saved position
	AgeSeconds      float64        `json:"positionAgeSeconds"`
	Comparing       change.Reason  `json:"comparing,omitempty"` // with the cluster, and why
	Waits           listener.Waits `json:"waits,omitempty"`     // why it is not given the stream as others are
	Since           time.Time      `json:"since,omitzero"`      // its position stands still
}

// objectCount is how many objects of a stream a sink has.
type objectCount struct {
	n       int
	counted time.Time
	took    time.Duration // to count them
	written time.Time     // something was written last
}

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
