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
