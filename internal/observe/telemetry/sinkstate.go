package telemetry

import (
	"fmt"
	"slices"
	"strings"
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

// settling is how long a reconcile may be kept from the log, so that one line can say how it ended, and of all that
// came with it.
const settling = 15 * time.Second

// story is a reconcile, with the gap that it mends if there is one, of which the log has not been told the end.
type story struct {
	of           *gapState // where there is no gap, what is compared
	mends        bool      // there is one
	cause        string    // the failure that it began with, "" where there was none
	began, ended time.Time
	told         time.Time // the last line of it; zero is none yet
	objects      int       // that were listed
	counts       change.Counts
}

// moved is when something happened last.
func (g *story) moved() time.Time {
	if g.ended.IsZero() {
		return g.began
	}
	return g.ended
}

// is says whether the snapshot is the reconcile's.
func (g *story) is(stream change.Stream, snapshot *change.Snapshot) bool {
	return g.ended.IsZero() && g.of.Stream == stream.String() && g.of.Reason == snapshot.Reason && slices.Equal(g.of.Sinks, snapshot.Sinks)
}

// attributes are those of a line about this one alone.
func (g *story) attributes() []any {
	line := []any{"resource", g.of.Stream, "reason", g.of.Reason}
	if g.mends {
		line = append(line, "lastDelivered", g.of.From)
	}
	line = append(line, "resourceVersion", g.of.To)
	if g.mends && !g.of.Since.IsZero() {
		line = append(line, "since", g.of.Since)
	}
	if g.of.Sinks != nil {
		line = append(line, "sinks", g.of.Sinks)
	}
	if g.cause != "" {
		line = append(line, "error", g.cause)
	}
	if g.ended.IsZero() {
		return line
	}
	return append(line, g.outcome()...)
}

// outcome is what the reconcile found.
func (g *story) outcome() []any {
	line := []any{"objects", g.objects, "replaced", g.counts.Replaced, "deleted", g.counts.Deleted}
	if g.of.Reason.Full() {
		line = append(line, "synced", g.counts.Synced)
	}
	return append(line, "for", g.ended.Sub(g.began).Round(time.Millisecond))
}

// String is the gap in a line about several.
func (g *story) String() string {
	text := fmt.Sprintf("%s(%s %s-%s", g.of.Stream, g.of.Reason, g.of.From, g.of.To)
	if g.of.Sinks != nil {
		text += " of " + strings.Join(g.of.Sinks, ",")
	}
	if !g.ended.IsZero() {
		text += fmt.Sprintf(": %d replaced, %d deleted", g.counts.Replaced, g.counts.Deleted)
	}
	return text + ")"
}

// stories are the reconciles that go on, and those whose end is told in a moment. Nothing else is remembered of them.
type stories struct {
	all    []*story
	ending bool // nobody looks any more: what comes is told at once
}

// find returns the story that the snapshot belongs to, nil where there is none.
func (all *stories) find(stream change.Stream, snapshot *change.Snapshot) *story {
	for _, g := range all.all {
		if g.is(stream, snapshot) {
			return g
		}
	}
	return nil
}

// quiet says whether the log is about to be told of a gap of the stream, and so not of the watch that goes on beside
// its reconcile.
func (all *stories) quiet(stream change.Stream) bool {
	return slices.ContainsFunc(all.all, func(g *story) bool {
		return g.mends && g.of.Stream == stream.String() && g.of.Reason.Beside() && g.told.IsZero()
	})
}

// untold are those that the log knows nothing of, whether they have ended or not.
func (all *stories) untold() (ended, open []*story) {
	for _, g := range all.all {
		switch {
		case !g.told.IsZero():
		case g.ended.IsZero():
			open = append(open, g)
		default:
			ended = append(ended, g)
		}
	}
	return ended, open
}

// due says whether the log is to be told now: when all have ended and no other has come for a moment, or when it has
// lasted.
func (all *stories) due(now time.Time) bool {
	ended, open := all.untold()
	untold := append(ended, open...)
	if len(untold) == 0 || all.ending {
		return len(untold) > 0
	}
	oldest, newest := untold[0].began, untold[0].moved()
	for _, g := range untold[1:] {
		if g.began.Before(oldest) {
			oldest = g.began
		}
		if g.moved().After(newest) {
			newest = g.moved()
		}
	}
	return now.Sub(oldest) >= settling || len(open) == 0 && now.Sub(newest) >= patience
}

// drop forgets the story.
func (all *stories) drop(g *story) {
	all.all = slices.DeleteFunc(all.all, func(other *story) bool { return other == g })
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

// calm is how long after the end of an outage streams that it held up must be read on without a gap until nothing is
// held to be lost.
const calm = 10 * time.Second

// The answers to what an outage has lost.
const (
	lostNothing = "nothing"
	lostStates  = "intermediate states: the line of the gap tells which"
	lostUnknown = "not known yet: streams were held up; the line of a gap names each that lost states"
)

// comeback is the end of an outage, until the log is told of it.
type comeback struct {
	outage
	at    time.Time
	waits []any
	held  bool // streams
}

// lost says what the outage has lost, if that is known. It is where the streams that it held up are read again, which
// they are when the sink has all that waited, and none of them has a gap, or the gap's line is told.
func (c *comeback) lost(now, oldest time.Time, gaps, busy bool) (text string, isKnown bool) {
	late := now.Sub(c.at) >= word
	switch {
	case gaps && (!busy || !c.held || late):
		return lostStates, true
	case !c.held:
		return lostNothing, true
	case late:
		return lostUnknown, true
	case busy || now.Sub(c.at) < calm:
		return "", false
	}
	return lostNothing, oldest.IsZero() || oldest.After(c.at)
}

// patience is how long a sink that was open may repeat what it does before somebody is told: brokers that change their
// leader are routine. A word is how often the log is told of what lasts.
const (
	patience = 5 * time.Second
	word     = time.Minute
)

// outage is the time in which a sink does not take records, from its first error to its next batch.
type outage struct {
	began    time.Time // zero is none
	told     time.Time // the last line of it; zero is none yet
	attempts int
	gaps     int // that were known when it began
}

// fails notes an attempt that failed, and says whether the log is to be told: at once, or when it has lasted. The first
// line is its beginning, those after it come once a minute.
func (o *outage) fails(now time.Time, gaps int, atOnce bool) (first, again bool) {
	if o.began.IsZero() {
		*o = outage{began: now, gaps: gaps}
	}
	o.attempts++
	first = o.told.IsZero() && (atOnce || now.Sub(o.began) >= patience)
	again = !o.told.IsZero() && now.Sub(o.told) >= word
	if first || again {
		o.told = now
	}
	return first, again
}

// heard notes that the log was told something else of the outage: the next line comes a minute later.
func (o *outage) heard(now time.Time) {
	if !o.told.IsZero() {
		o.told = now
	}
}

// tally counts what is worth a line once and may happen to any number of objects: the log is told at once, and then
// once a minute with a count and an example.
type tally struct {
	told    time.Time
	since   int   // the last line
	example []any // the newest of them
}

// note counts one more.
func (a *tally) note(example ...any) { a.since, a.example = a.since+1, example }

// take returns how many the log does not know of, and the newest of them, if it is time to tell it or these are the
// last ones; otherwise 0.
func (a *tally) take(now time.Time, last bool) (n int, example []any) {
	if a.since == 0 || !last && !a.told.IsZero() && now.Sub(a.told) < word {
		return 0, nil
	}
	n, example = a.since, a.example
	*a = tally{told: now}
	return n, example
}

// records is the example, with the number of records if it is one of several; nil if nothing is to be told.
func (a *tally) records(now time.Time, last bool) []any {
	n, example := a.take(now, last)
	if n > 1 {
		example = append(example, "records", n)
	}
	return example
}

// check is one thing that readiness depends on.
type check struct {
	name    string
	problem string // "" is none
	state   string // for people
}

// unready says what has not started yet, or stands still.
func unready(checks []check) (problems []string) {
	for _, c := range checks {
		if c.problem != "" {
			problems = append(problems, c.problem)
		}
	}
	return problems
}

// verbose is a line for each check, as the API server writes them.
func verbose(checks []check) string {
	var text strings.Builder
	ready := true
	for _, c := range checks {
		sign, what := "+", c.state
		if c.problem != "" {
			sign, what, ready = "-", c.problem, false
		}
		fmt.Fprintf(&text, "[%s]%s: %s\n", sign, c.name, strings.ReplaceAll(what, "\n", " "))
	}
	if ready {
		text.WriteString("ready\n")
	} else {
		text.WriteString("not ready\n")
	}
	return text.String()
}

// A sink that does not fail may still take fewer records than arrive. slow is how old its oldest record is then, and
// how long that lasts until the log is told: a record that another sink has held up is old when it comes. After an
// outage, what waited has as much time as that took.
const slow = time.Minute

// behind is what the log knows of a sink that takes records too slowly.
type behind struct {
	late  time.Time // since when its oldest record is old; zero is not
	since time.Time // zero is not behind
	spool bool      // it fills
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

func streamStates() []string { return []string{starting, snapshotting, watching, waiting, failing} }

func sinkStates() []string { return []string{starting, open, failing, stopped} }
