package telemetry

import (
	"fmt"
	"strings"
)

// check is one thing that readiness depends on.
type check struct {
	name    string
	problem string // "" is none
	state   string // for people
}

// checks are those of what is known, and of a standby. One that still reads the log of the state for the first time is
// not ready: an update that waits for it can stop the leader, and the takeover reads little. One that cannot read the
// log takes over all the same.
func (t shown) checks() []check {
	checks := t.states.checks()
	if t.Leadership == nil {
		return checks
	}
	b := t.Leadership().Standby
	if b == nil {
		return checks
	}
	c := check{name: "standby", state: "follows the log of the state"}
	switch {
	case b.LastError != "":
		c.state = "cannot follow the log of the state: " + b.LastError
	case !b.Whole:
		c.problem = "this standby reads the log of the state for the first time"
	}
	return append(checks, c)
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
