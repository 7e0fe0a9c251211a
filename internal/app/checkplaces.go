package app

import (
	"slices"

	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// checkPlaces finds sinks that would write into each other's logs: each would take the other for a second writer,
// or tell twice.
func checkPlaces(cfg *config.Config, c *cluster, r *report) {
	var before [][]place
	for i := range cfg.Sinks {
		var mine []place
		if d, err := c.destination(&cfg.Sinks[i]); err == nil { // what is wrong with it is told by those who build it
			mine = d.places
		}
		for j, theirs := range before {
			for _, p := range mine {
				if slices.ContainsFunc(theirs, func(other place) bool { return p.meets(&other) }) {
					r.problem(usage.Errorf("sinks %s and %s write to the same %s: give each its own with the key %s, or leave one out",
						cfg.Sinks[j].Name, cfg.Sinks[i].Name, p.what, p.key))
				}
			}
		}
		before = append(before, mine)
	}
}
