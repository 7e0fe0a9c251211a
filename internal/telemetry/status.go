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

// unknownCount is an inventory size that must be read from the store.
const unknownCount = -1

// streamState is one stream on /statusz.
type streamState struct {
	State              string          `json:"state"`
	ResourceVersion    string          `json:"resourceVersion"`
	PositionAgeSeconds float64         `json:"positionAgeSeconds"`
	HistoryLeftSeconds float64         `json:"historyLeftSeconds"` // an estimate
	Records            int             `json:"records"`
	Gaps               int             `json:"gaps"`
	LastGap            *gapState       `json:"lastGap,omitempty"`
	LastReconcile      *reconcileState `json:"lastReconcile,omitempty"`
	LastError          string          `json:"lastError,omitempty"`
	LastErrorTime      time.Time       `json:"lastErrorTime,omitzero"`

	late      bool      // it came when the process ran already
	resource  string    // as metrics have it
	sign      time.Time // of life
	confirmed time.Time // when the saved position was the server's newest
	objects   int       // in the inventory, or unknownCount

	corrections int                              // of the reconcile that runs, or ran last
	received    map[change.Op]prometheus.Counter // each made when it is needed first
	bytes       prometheus.Counter               // made with the first of them
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
}

type reconcileState struct {
	Reason          change.Reason `json:"reason"`
	Sinks           []string      `json:"sinks,omitempty"` // none is all
	ResourceVersion string        `json:"resourceVersion"`
	change.Counts
	Time time.Time `json:"time"`
}

// sinkState is one sink on /statusz.
type sinkState struct {
	State                string    `json:"state"`
	Records              int       `json:"records"`
	QueueRecords         int       `json:"queueRecords"`
	QueueBytes           int       `json:"queueBytes"`
	SpoolRecords         int64     `json:"spoolRecords"`
	SpoolBytes           int64     `json:"spoolBytes"`
	OldestUnackedSeconds float64   `json:"oldestUnackedSeconds"`
	Mark                 string    `json:"mark"`
	Note                 string    `json:"note,omitempty"`   // how it works, where there is a choice
	Absent               bool      `json:"absent,omitempty"` // nobody waits for it
	Gaps                 int       `json:"gaps"`             // of this sink alone
	LastGap              *gapState `json:"lastGap,omitempty"`
	LastError            string    `json:"lastError,omitempty"`
	LastErrorTime        time.Time `json:"lastErrorTime,omitzero"`

	oldest      time.Time
	opened      bool // once
	repeated    bool // it failed again as before, which is not logged
	lettersFull bool // which was logged
}

// commitState is the store on /statusz.
type commitState struct {
	LastError     string     `json:"lastError,omitempty"`
	LastErrorTime *time.Time `json:"lastErrorTime,omitempty"`
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

// countObjects returns the size of a stream's inventory; the caller holds mu.
func (t *Telemetry) countObjects(stream string) (int, error) {
	s := t.streams[stream]
	if s.objects == unknownCount {
		n, err := t.CountObjects(stream)
		if err != nil {
			return 0, err
		}
		s.objects = n
	}
	return s.objects, nil
}

// Status is the document at /statusz.
type Status struct {
	Version       string                 `json:"version"`
	Cluster       string                 `json:"cluster"`
	ClusterUID    string                 `json:"clusterUid"`
	UptimeSeconds float64                `json:"uptimeSeconds"`
	Healthy       bool                   `json:"healthy"`
	Ready         bool                   `json:"ready"`
	Problems      []string               `json:"problems,omitempty"`
	Streams       map[string]streamState `json:"streams"`
	Sinks         map[string]sinkState   `json:"sinks"`
	State         commitState            `json:"state"`
	Discovery     discoveryState         `json:"discovery"`
}

// Status is how things stand now.
func (t *Telemetry) Status() Status {
	now, unsaved := time.Now(), t.unsaved()
	t.mu.Lock()
	defer t.mu.Unlock()
	status := Status{
		Version: t.Version, Cluster: t.ClusterName, ClusterUID: t.ClusterUID, UptimeSeconds: now.Sub(t.started).Seconds(),
		Streams: map[string]streamState{}, Sinks: map[string]sinkState{}, State: t.commit,
		Discovery: t.discovery,
	}
	for name, s := range t.streams {
		shown := *s
		shown.PositionAgeSeconds = age(now, s.confirmed)
		shown.HistoryLeftSeconds = historyLeft(now, unsaved[name]).Seconds()
		status.Streams[name] = shown
	}
	for name, s := range t.sinks {
		shown := *s
		shown.OldestUnackedSeconds = age(now, s.oldest)
		status.Sinks[name] = shown
	}
	status.Problems = t.unhealthy(now)
	status.Healthy, status.Ready = len(status.Problems) == 0, len(t.unready()) == 0
	return status
}

// silence is how long a stream may give no sign of life. A watch is opened again after ten minutes at most.
const silence = 15 * time.Minute

// unhealthy says what a restart might mend: a stream that is silent although no sink holds it up. The caller holds mu.
func (t *Telemetry) unhealthy(now time.Time) []string {
	for _, s := range t.sinks {
		if s.QueueRecords > 0 {
			return nil // back-pressure: the streams may be waiting for this sink
		}
	}
	var problems []string
	for name, s := range t.streams {
		if s.State != waiting && now.Sub(s.sign) > silence {
			problems = append(problems, fmt.Sprintf("stream %s gave no sign of life for %s", name, now.Sub(s.sign).Round(time.Second)))
		}
	}
	return problems
}

// Settled says whether every sink is open and no stream that is served starts or is being reconciled.
func (t *Telemetry) Settled() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.streams {
		if s.State == starting || s.State == snapshotting {
			return false
		}
	}
	return len(t.unready()) == 0
}

// unready says what has not started yet, or stands still: of the streams those that were there when the process started
// and have neither begun nor failed to. One that is forbidden or not served is on /statusz, and holds nothing up. The
// caller holds mu.
func (t *Telemetry) unready() []string {
	var missing []string
	for name, s := range t.streams {
		if s.State == starting && !s.late {
			missing = append(missing, "stream "+name+" has not started")
		}
	}
	for name, s := range t.sinks {
		if !s.opened {
			missing = append(missing, "sink "+name+" is not open")
		}
		if s.State == stopped {
			missing = append(missing, "sink "+name+" is stopped: "+s.LastError)
		}
	}
	if t.commit.LastError != "" {
		missing = append(missing, "the state is not saved: "+t.commit.LastError)
	}
	return missing
}
