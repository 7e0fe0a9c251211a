package telemetry

import "time"

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
