package telemetry

import "time"

// Place is where a sink writes, and how, as people are told.
type Place struct {
	Kind    string `json:"kind,omitempty"`
	Address string `json:"address,omitempty"` // without a login
	Format  string `json:"format,omitempty"`
}

// sinkState is one sink on /statusz.
type sinkState struct {
	Place
	State                string       `json:"state"`
	Records              int          `json:"records"`
	QueueRecords         int          `json:"queueRecords"`
	QueueBytes           int          `json:"queueBytes"`
	SpoolRecords         int64        `json:"spoolRecords"`
	SpoolBytes           int64        `json:"spoolBytes"`
	OldestUnackedSeconds float64      `json:"oldestUnackedSeconds"`
	Mark                 string       `json:"mark"`
	Note                 string       `json:"note,omitempty"` // how it works, where there is a choice
	Gaps                 int          `json:"gaps"`           // of this sink alone
	LastGap              *gapState    `json:"lastGap,omitempty"`
	RecentGaps           []*gapState  `json:"recentGaps,omitempty"` // the newest first; replaced, never changed
	LastError            string       `json:"lastError,omitempty"`
	LastErrorTime        time.Time    `json:"lastErrorTime,omitzero"`
	FailingSince         time.Time    `json:"failingSince,omitzero"`
	Asking               *askingState `json:"asking,omitempty"` // nil where nobody can ask through its broker
	// Schemas are those of a sink with a registry, by resource; replaced, never changed.
	Schemas map[string]schemaState `json:"schemas,omitempty"`

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
	followed    tally     // what was asked through its broker
	refused     tally     // and was not followed
	schemasTold time.Time // when the log was told last that some wait
}

// isLate says whether the oldest record of a sink that does not fail has been old for a while.
func (s *sinkState) isLate(now time.Time) bool {
	old := !s.oldest.IsZero() && now.Sub(s.oldest) >= slow
	switch {
	case !old || s.State != open || !s.outage.began.IsZero() || now.Before(s.timely):
		s.behind.late = time.Time{}
	case s.behind.late.IsZero():
		s.behind.late = now
	}
	return !s.behind.late.IsZero() && now.Sub(s.behind.late) >= slow
}

// waits are what waits for a sink, for a log line.
func (s *sinkState) waits() []any {
	return []any{"waiting", int64(s.QueueRecords) + s.SpoolRecords, "waitingBytes", s.QueueBytes, "spoolBytes", s.SpoolBytes}
}

func (s *sinkState) check(name string) check {
	c := check{name: "sink " + name, state: s.State}
	if s.LastError != "" {
		c.state += ": " + s.LastError
	}
	switch {
	case s.State == stopped:
		c.problem = "sink " + name + " is stopped: " + s.LastError
	case !s.opened:
		if c.problem = "sink " + name + " is not open"; s.LastError != "" {
			c.problem += ": " + s.LastError
		}
	}
	return c
}

// askingState is what others ask through a sink's broker, on /statusz. It is replaced, never changed.
type askingState struct {
	Followed      int       `json:"followed"` // since the start
	Refused       int       `json:"refused"`
	LastError     string    `json:"lastError,omitempty"` // why nothing can be asked
	LastErrorTime time.Time `json:"lastErrorTime,omitzero"`
}

// isUp says whether others can ask.
func (s *askingState) isUp() bool { return s.LastError == "" }

// schemaState is the schema of one resource in a sink with a registry.
type schemaState struct {
	State     string    `json:"state"`
	Subject   string    `json:"subject,omitempty"`
	ID        uint32    `json:"id,omitempty"`
	LastError string    `json:"lastError,omitempty"`
	Since     time.Time `json:"since"` // of the state
}
