package telemetry

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// commitState is the store on /statusz.
type commitState struct {
	LastError     string     `json:"lastError,omitempty"`
	LastErrorTime *time.Time `json:"lastErrorTime,omitempty"`
	FailingSince  time.Time  `json:"failingSince,omitzero"`
	SavedAgain    time.Time  `json:"savedAgain,omitzero"` // when it was, after it could not be; zero where that never was so
	Log           *StateLog  `json:"log,omitempty"`

	attempts int // that failed
}

// StateLog is the log of the state on /statusz.
type StateLog struct {
	LagSeconds    float64   `json:"lagSeconds"`       // since the oldest saved change that it lacks
	Fenced        bool      `json:"fenced,omitempty"` // another exporter writes it
	LastError     string    `json:"lastError,omitempty"`
	LastErrorTime time.Time `json:"lastErrorTime,omitzero"`
}

// Leadership is who leads, on /statusz, where several exporters share a task.
type Leadership struct {
	Leads  bool   `json:"leads"`            // this one does
	Leader string `json:"leader,omitempty"` // the host that does; "" is nobody, or not known
	// when that one got the Lease, by its own clock
	Since     time.Time `json:"since,omitzero"`
	Lease     string    `json:"lease"`     // namespace/name
	Takeovers int       `json:"takeovers"` // how often this one has begun to lead since it started
	// of the API server, as long as it does not answer for the Lease
	LastError string   `json:"lastError,omitempty"`
	Standby   *Standby `json:"standby,omitempty"` // while this one stands by
}

// Standby is how an exporter follows the log of the state while it stands by.
type Standby struct {
	Whole         bool      `json:"whole"`      // it has had all that the log had, once since it began to wait
	LagSeconds    float64   `json:"lagSeconds"` // since it had all that the log had then, or since it began to wait
	LastError     string    `json:"lastError,omitempty"`
	LastErrorTime time.Time `json:"lastErrorTime,omitzero"`
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

// states are what is known of the streams, the sinks, the store and discovery. They have no lock: their owner has one.
type states struct {
	streams   map[string]*streamState
	name      []byte // of a stream, while it is looked for
	sinks     map[string]*sinkState
	commit    commitState
	discovery discoveryState
	gaps      gapStories
	failing   time.Time // when the log was told last of streams that fail
	// what the audit webhook refused, and what it was not told of
	auditRefused, auditMissing tally
}

// stream is what is known of a stream; of one that is forgotten, it is a state that nobody sees.
func (all *states) stream(stream change.Stream) *streamState {
	all.name = stream.AppendString(all.name[:0]) // and no string, which would be one a record
	if s := all.streams[string(all.name)]; s != nil {
		return s
	}
	over := newStreamState(stream, true)
	over.over = true
	return over
}

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

func now() *time.Time { t := time.Now(); return &t }

// checks are all that readiness depends on, and what of the rest a person may want to know. Of the streams, those count
// that were there when the process started and have neither begun nor failed to. One that is forbidden or not served is
// on /statusz, and holds nothing up. Credentials that are refused are a person's to mend, as those of a sink.
func (all *states) checks() []check {
	var checks []check
	credentials := check{name: "credentials"}
	for _, name := range slices.Sorted(maps.Keys(all.streams)) {
		s := all.streams[name]
		c := check{name: "stream " + name, state: s.State}
		if s.LastError != "" {
			c.state += ": " + s.LastError
		}
		if s.State == starting && !s.late {
			c.problem = "stream " + name + " has not started"
		}
		if s.refused {
			credentials.problem = "the API server refuses the credentials: " + s.LastError + ": renew the exporter's token or certificate"
		}
		checks = append(checks, c)
	}
	for _, name := range slices.Sorted(maps.Keys(all.sinks)) {
		checks = append(checks, all.sinks[name].check(name))
	}
	state := check{name: "state", state: "saved"}
	if all.commit.LastError != "" {
		state.problem = "the state is not saved: " + all.commit.LastError
	}
	if checks = append(checks, state); credentials.problem != "" {
		checks = append(checks, credentials)
	}
	return checks
}

// restless says whether a gap is about to be told.
func (all *states) restless() bool {
	mended, open := all.gaps.untold()
	for _, s := range all.streams {
		if s.expired != "" {
			return true
		}
	}
	return len(mended)+len(open) > 0
}

// silence is how long a stream may give no sign of life. A watch is opened again after ten minutes at most.
const silence = 15 * time.Minute
