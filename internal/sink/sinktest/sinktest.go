package sinktest

import "testing"

// Harness makes environments.
type Harness struct {
	// New returns an empty log of its own for one test, and leaves its end to t.Cleanup.
	New func(t *testing.T) *Env
}

// Run tries a sink against the contract. Each case has an environment of its own and is named after what it holds.
func Run(t *testing.T, h Harness) {
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, h.New(t))
			if c.needs != nil && !c.needs(r.env) {
				t.Skip("the log has no such fault")
			}
			c.run(r)
		})
	}
}
