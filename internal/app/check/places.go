package check

import (
	"slices"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/destination"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// checkPlaces finds sinks that would write into each other's logs: each would take the other for a second writer,
// or tell twice.
func checkPlaces(cfg *config.Config, c *cluster.Cluster, r *report) {
	var before []territory
	for i := range cfg.Sinks {
		mine := territory{name: cfg.Sinks[i].Name}
		if d, err := destination.Of(&cfg.Sinks[i], c); err == nil { // what is wrong with it is told by those who build it
			mine.places = d.Places
		}
		for _, theirs := range before {
			theirs.checkBeside(&mine, r)
		}
		before = append(before, mine)
	}
}

// territory is a sink with what it alone writes to.
type territory struct {
	name   string
	places []destination.Place
}

func (a *territory) checkBeside(other *territory, r *report) {
	for _, p := range other.places {
		if slices.ContainsFunc(a.places, func(theirs destination.Place) bool { return p.Meets(&theirs) }) {
			r.problem(usage.Errorf("sinks %s and %s write to the same %s: give each its own with the key %s, or leave one out",
				a.name, other.name, p.What, p.Key))
		}
		for _, theirs := range a.places {
			if subject := p.Disputed(&theirs); subject != "" {
				r.problem(usage.Errorf("sinks %s and %s have two streams for the subject %s, which can be of one only: give each its own with the key nats.subject, or leave one out",
					a.name, other.name, subject))
			}
		}
	}
}
