package destination

import (
	"net"
	"slices"
	"strings"
)

// Place is what one sink alone writes to, at one of some servers.
type Place struct {
	servers  []string // host:port of some; none is this host
	What     string   // "stream K8S"
	Key      string   // of the sink's configuration, which tells the places apart
	shared   bool     // who shares it says so
	subjects []string // with wildcards, of which each belongs to one stream of the servers
}

// Meets says whether both are the same: a place whose servers are named otherwise is not known to be.
func (p *Place) Meets(other *Place) bool {
	if p.What != other.What || p.shared && other.shared {
		return false
	}
	return len(p.servers) == 0 || p.neighbours(other)
}

// neighbours says whether both are at one server.
func (p *Place) neighbours(other *Place) bool {
	theirs := machines(other.servers)
	return slices.ContainsFunc(machines(p.servers), func(s string) bool { return slices.Contains(theirs, s) })
}

// machines are the servers, of which this host has one name.
func machines(servers []string) (all []string) {
	for _, server := range servers {
		host, port, err := net.SplitHostPort(server)
		if address := net.ParseIP(host); err == nil && (host == "localhost" || address != nil && address.IsLoopback()) {
			server = net.JoinHostPort("localhost", port)
		}
		all = append(all, server)
	}
	return all
}

// withPort is the address as host:port.
func withPort(address, port string) string {
	if _, _, err := net.SplitHostPort(address); err == nil {
		return address
	}
	return net.JoinHostPort(strings.Trim(address, "[]"), port)
}
