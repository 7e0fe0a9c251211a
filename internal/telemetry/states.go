package telemetry

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecdc/kubecdc/internal/change"
)

// The states of streams and sinks.
const (
	starting     = "starting"
	snapshotting = "snapshot"
	watching     = "watching"
	waiting      = "waiting"
	open         = "open"
	failing      = "failing"
	stopped      = "stopped"
)

func streamStates() []string { return []string{starting, snapshotting, watching, waiting, failing} }

func sinkStates() []string { return []string{starting, open, failing, stopped} }

// unknownCount is an inventory size that must be read from the store.
const unknownCount = -1

// streamState is one stream on /statusz.
type streamState struct {
	State              string          `json:"state"`
	ResourceVersion    string          `json:"resourceVersion"`
	PositionAgeSeconds float64         `json:"positionAgeSeconds"`
	HistorySeconds     float64         `json:"historySeconds"`     // an estimate
	HistoryLeftSeconds float64         `json:"historyLeftSeconds"` // of them
	HeldBy             []string        `json:"heldBy,omitempty"`   // sinks, for more than half of the history
	HeldSince          time.Time       `json:"heldSince,omitzero"`
	Records            int             `json:"records"`
	Gaps               int             `json:"gaps"`
	LastGap            *gapState       `json:"lastGap,omitempty"`
	LastReconcile      *reconcileState `json:"lastReconcile,omitempty"`
	Snapshot           *snapshotState  `json:"snapshot,omitempty"`
	LastError          string          `json:"lastError,omitempty"`
	LastErrorTime      time.Time       `json:"lastErrorTime,omitzero"`

	late      bool           // it came when the process ran already
	resource  string         // as metrics have it
	sign      time.Time      // of life
	confirmed time.Time      // when the saved position was the server's newest
	objects   int            // in the inventory, or unknownCount
	given     *snapshotState // read to its end, and behind it no other has begun
	pace      pace
	partial   bool // it is of a part of its resource
	uncached  bool // by the API server

	failed    time.Time // since when the log knows that it fails; zero where it does not
	expired   string    // why its history is gone, until the log is told of the gap; "" where it is not
	expiredAt time.Time

	comparing   bool                             // all sinks are given a snapshot
	corrections int                              // of the reconcile that runs, or ran last
	received    map[change.Op]prometheus.Counter // each made when it is needed first
	bytes       prometheus.Counter               // made with the first of them
	misshapen   tally                            // objects that a filter or a redaction failed for
}

// gapState is a change.GapError as it is shown.
type gapState struct {
	Reason change.Reason `json:"reason"`
	Stream string        `json:"stream"`
	Sinks  []string      `json:"sinks,omitempty"`  // none is all
	Object string        `json:"object,omitempty"` // of a gap of reason policy
	From   string        `json:"lastDelivered"`
	To     string        `json:"resourceVersion"`
	Since  time.Time     `json:"since,omitzero"`
	Time   time.Time     `json:"time"`
	// Of a gap of reason policy.
	Rejected string    `json:"rejected,omitempty"` // why the sink refused the record
	Resolved time.Time `json:"resolved,omitzero"`  // when its dead letter was delivered after all
}

type reconcileState struct {
	Reason          change.Reason `json:"reason"`
	Sinks           []string      `json:"sinks,omitempty"` // none is all
	ResourceVersion string        `json:"resourceVersion"`
	change.Counts
	Limits change.Limits `json:"limits,omitzero"`
	Time   time.Time     `json:"time"`
}

// sinkState is one sink on /statusz.
type sinkState struct {
	Place
	State                string      `json:"state"`
	Records              int         `json:"records"`
	QueueRecords         int         `json:"queueRecords"`
	QueueBytes           int         `json:"queueBytes"`
	SpoolRecords         int64       `json:"spoolRecords"`
	SpoolBytes           int64       `json:"spoolBytes"`
	OldestUnackedSeconds float64     `json:"oldestUnackedSeconds"`
	Mark                 string      `json:"mark"`
	Note                 string      `json:"note,omitempty"`   // how it works, where there is a choice
	Absent               bool        `json:"absent,omitempty"` // nobody waits for it
	Gaps                 int         `json:"gaps"`             // of this sink alone
	LastGap              *gapState   `json:"lastGap,omitempty"`
	RecentGaps           []*gapState `json:"recentGaps,omitempty"` // the newest first; replaced, never changed
	LastError            string      `json:"lastError,omitempty"`
	LastErrorTime        time.Time   `json:"lastErrorTime,omitzero"`
	FailingSince         time.Time   `json:"failingSince,omitzero"`

	oldest      time.Time
	opened      bool      // once
	timely      time.Time // from when on it may be held to be behind: later where it was away for long
	behind      behind
	outage      outage
	back        *comeback // nil where the log knows
	holds       int       // streams, for more than half of their history
	holding     bool      // which was logged
	lettersFull bool      // which was logged
	trimmed     tally     // records that were cut
	rejected    tally     // records that it will never take
}

// commitState is the store on /statusz.
type commitState struct {
	LastError     string     `json:"lastError,omitempty"`
	LastErrorTime *time.Time `json:"lastErrorTime,omitempty"`
	Log           *StateLog  `json:"log,omitempty"`
}

// StateLog is the log of the state on /statusz.
type StateLog struct {
	LagSeconds    float64   `json:"lagSeconds"`       // since the oldest saved change that it lacks
	Held          bool      `json:"held,omitempty"`   // it stands still, since spooled records are on this disk alone
	Fenced        bool      `json:"fenced,omitempty"` // another exporter writes it
	LastError     string    `json:"lastError,omitempty"`
	LastErrorTime time.Time `json:"lastErrorTime,omitzero"`
}

// compared notes that a snapshot of the reason is complete, and says whether the stream is only watched from now on. A
// watch is open beside it, or is opened next.
func (s *streamState) compared(reason change.Reason) (watched bool) {
	if reason.Full() {
		return false
	}
	s.comparing = false
	if watched = s.State == snapshotting && reason.Beside(); watched {
		s.State = watching
	}
	return watched
}

// committed moves the saved position and keeps count of the objects.
func (s *streamState) committed(rec *change.Record, now time.Time) {
	if rec.Position.ResourceVersion != "" && !rec.Position.Initial() {
		s.ResourceVersion, s.confirmed = rec.Position.ResourceVersion, now
	}
	switch {
	case rec.Sink != "": // it leaves the inventory as it is
	case rec.Snapshot != nil:
		s.objects = unknownCount
	case s.objects == unknownCount:
	case rec.Op == change.Added:
		s.objects++
	case rec.Op == change.Deleted:
		s.objects--
	}
}

// discoveryState is what is known of the API server's discovery on /statusz.
type discoveryState struct {
	LastRead time.Time `json:"lastRead,omitzero"`
	// of the newest attempt, or what the server could not tell
	LastError     string    `json:"lastError,omitempty"`
	LastErrorTime time.Time `json:"lastErrorTime,omitzero"` // when it was heard first
	// resources and names that are not streamed, and why
	LeftOut map[string]string `json:"leftOut,omitempty"`
}

func newStreamState(stream change.Stream, late bool) *streamState {
	return &streamState{
		State: starting, objects: unknownCount, sign: time.Now(), late: late, resource: stream.Resource.String(),
		partial: stream.Namespace != "", uncached: isUncached(stream.Resource), received: map[change.Op]prometheus.Counter{},
	}
}

// states are what is known of the streams, the sinks, the store and discovery. They have no lock: their owner has one.
type states struct {
	streams   map[string]*streamState
	name      []byte // of a stream, while it is looked for
	sinks     map[string]*sinkState
	commit    commitState
	discovery discoveryState
	gaps      gapStories
}

// stream is what is known of a stream; of one that is forgotten, it is a state that nobody sees.
func (all *states) stream(stream change.Stream) *streamState {
	all.name = stream.AppendString(all.name[:0]) // and no string, which would be one a record
	if s := all.streams[string(all.name)]; s != nil {
		return s
	}
	return newStreamState(stream, true)
}

// silence is how long a stream may give no sign of life. A watch is opened again after ten minutes at most.
const silence = 15 * time.Minute

// unhealthy says what a restart might mend: a stream that is silent although no sink holds it up.
func (all *states) unhealthy(now time.Time) []string {
	for _, s := range all.sinks {
		if s.QueueRecords > 0 {
			return nil // back-pressure: the streams may be waiting for this sink
		}
	}
	var problems []string
	for name, s := range all.streams {
		if s.State != waiting && now.Sub(s.sign) > silence {
			problems = append(problems, fmt.Sprintf("stream %s gave no sign of life for %s", name, now.Sub(s.sign).Round(time.Second)))
		}
	}
	return problems
}

// unready says what has not started yet, or stands still: of the streams those that were there when the process started
// and have neither begun nor failed to. One that is forbidden or not served is on /statusz, and holds nothing up.
func (all *states) unready() []string {
	var missing []string
	for _, c := range all.checks() {
		if c.problem != "" {
			missing = append(missing, c.problem)
		}
	}
	return missing
}

func now() *time.Time { t := time.Now(); return &t }
