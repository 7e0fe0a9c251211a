package telemetry

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// check is one thing that readiness depends on.
type check struct {
	name    string
	problem string // "" is none
	state   string // for people
}

// checks are all that readiness depends on, and what of the rest a person may want to know.
func (all *states) checks() []check {
	var checks []check
	for _, name := range slices.Sorted(maps.Keys(all.streams)) {
		s := all.streams[name]
		c := check{name: "stream " + name, state: s.State}
		if s.LastError != "" {
			c.state += ": " + s.LastError
		}
		if s.State == starting && !s.late {
			c.problem = "stream " + name + " has not started"
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
	return append(checks, state)
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
		c.problem = "sink " + name + " is not open"
	}
	return c
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
