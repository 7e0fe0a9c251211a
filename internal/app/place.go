package app

import (
	"net"
	"slices"
	"strings"
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

// withPort is the address as host:port.
func withPort(address, port string) string {
	if _, _, err := net.SplitHostPort(address); err == nil {
		return address
	}
	return net.JoinHostPort(strings.Trim(address, "[]"), port)
}
