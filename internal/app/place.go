package app

import (
	"net"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// place is what one sink alone writes to, at one of some servers.
type place struct {
	servers []string // host:port of some; none is this host
	what    string   // "stream K8S"
	key     string   // of the sink's configuration, which tells the places apart
	shared  bool     // who shares it says so
}

// meets says whether both are the same: a place whose servers are named otherwise is not known to be.
func (p *place) meets(other *place) bool {
	if p.what != other.what || p.shared && other.shared {
		return false
	}
	return len(p.servers) == 0 || slices.ContainsFunc(p.servers, func(s string) bool { return slices.Contains(other.servers, s) })
}

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

// withPort is the address as host:port.
func withPort(address, port string) string {
	if _, _, err := net.SplitHostPort(address); err == nil {
		return address
	}
	return net.JoinHostPort(strings.Trim(address, "[]"), port)
}
