package app

import (
	"slices"

	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// checkPlaces finds sinks that would write into each other's logs: each would take the other for a second writer,
// or tell twice.
func checkPlaces(cfg *config.Config, c *cluster, r *report) {
	var before []abode
	for i := range cfg.Sinks {
		mine := abode{name: cfg.Sinks[i].Name}
		if d, err := c.destination(&cfg.Sinks[i]); err == nil { // what is wrong with it is told by those who build it
			mine.places = d.places
		}
		for _, theirs := range before {
			theirs.checkBeside(&mine, r)
		}
		before = append(before, mine)
	}
}

// abode is a sink with what it alone writes to.
type abode struct {
	name   string
	places []place
}

func (a *abode) checkBeside(other *abode, r *report) {
	for _, p := range other.places {
		if slices.ContainsFunc(a.places, func(theirs place) bool { return p.meets(&theirs) }) {
			r.problem(usage.Errorf("sinks %s and %s write to the same %s: give each its own with the key %s, or leave one out",
				a.name, other.name, p.what, p.key))
		}
		for _, theirs := range a.places {
			if subject := p.disputed(&theirs); subject != "" {
				r.problem(usage.Errorf("sinks %s and %s have two streams for the subject %s, which can be of one only: give each its own with the key nats.subject, or leave one out",
					a.name, other.name, subject))
			}
		}
	}
}
