package telemetry

import (
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Place is where a sink writes, and how, as people are told.
type Place struct {
	Kind    string `json:"kind,omitempty"`
	Address string `json:"address,omitempty"` // without a login
	Format  string `json:"format,omitempty"`
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
	Note                 string      `json:"note,omitempty"` // how it works, where there is a choice
	Gaps                 int         `json:"gaps"`           // of this sink alone
	LastGap              *gapState   `json:"lastGap,omitempty"`
	RecentGaps           []*gapState `json:"recentGaps,omitempty"` // the newest first; replaced, never changed
	Trouble
	FailingSince time.Time    `json:"failingSince,omitzero"`
	Asking       *askingState `json:"asking,omitempty"` // nil where nobody can ask through its broker
	// Schemas are those of a sink with a registry, by resource.
	Schemas map[string]schemaState `json:"schemas,omitempty"`

	oldest      time.Time
	opened      bool // once
	outage      outage
	holds       int  // streams, for more than half of their history
	holding     bool // which was logged
	lettersFull bool // which was logged
}

// waits are what waits for a sink, for a log line.
func (s *sinkState) waits() []any {
	return []any{"waiting", int64(s.QueueRecords) + s.SpoolRecords, "waitingBytes", s.QueueBytes, "spoolBytes", s.SpoolBytes}
}

// Trouble is the newest error of something; no text is none, or that it is over.
type Trouble struct {
	LastError     string    `json:"lastError,omitempty"`
	LastErrorTime time.Time `json:"lastErrorTime,omitzero"`
}

// TroubleOf takes nil for none.
func TroubleOf(err error) Trouble {
	if err == nil {
		return Trouble{}
	}
	return Trouble{shownError(err), time.Now()}
}

// shownError is the error's text, which may name an object.
func shownError(err error) string { return change.Shown(err.Error(), change.MaxShown) }

// askingState is what others ask through a sink's broker, on /statusz.
type askingState struct {
	Followed int `json:"followed"` // since the start
	Refused  int `json:"refused"`
	Trouble      // why nothing can be asked
}

// schemaState is the schema of one resource in a sink with a registry.
type schemaState struct {
	State     string    `json:"state"`
	Subject   string    `json:"subject,omitempty"`
	ID        uint32    `json:"id,omitempty"`
	LastError string    `json:"lastError,omitempty"`
	Since     time.Time `json:"since"` // of the state
}

// gapState is a gap as it is shown (I4).
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

// patience is how long a sink that was open may repeat what it does before somebody is told: brokers that change their
// leader are routine. Settling is how long a stream whose history is gone may wait for the gap. A word is how often the
// log is told of what lasts.
const (
	patience = 5 * time.Second
	settling = 15 * time.Second
	word     = time.Minute
)

// outage is the time in which a sink does not take records, from its first error to its next batch.
type outage struct {
	began    time.Time // zero is none
	told     time.Time // the last line of it; zero is none yet
	attempts int
}

// fails notes an attempt that failed, and says whether the log is to be told: at once, or when it has lasted. The first
// line is its beginning, those after it come once a minute.
func (o *outage) fails(now time.Time, atOnce bool) (first, again bool) {
	if o.began.IsZero() {
		*o = outage{began: now}
	}
	o.attempts++
	first = o.told.IsZero() && (atOnce || now.Sub(o.began) >= patience)
	again = !o.told.IsZero() && now.Sub(o.told) >= word
	if first || again {
		o.told = now
	}
	return first, again
}

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
