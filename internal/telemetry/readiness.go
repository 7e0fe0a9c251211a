package telemetry

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
