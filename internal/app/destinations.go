package app

import (
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// destination is what one sink alone writes to, at one of some servers.
type destination struct {
	servers []string // host:port of some; none is this host
	what    string   // "stream K8S"
	key     string   // of the sink's configuration, which tells the places apart
	shared  bool     // who shares it says so
}

// meets says whether both are the same: a destination whose servers are named otherwise is not known to be.
func (p *destination) meets(other *destination) bool {
	if p.what != other.what || p.shared && other.shared {
		return false
	}
	return len(p.servers) == 0 || slices.ContainsFunc(p.servers, func(s string) bool { return slices.Contains(other.servers, s) })
}

// checkDestinations finds sinks that would write into each other's logs: each would take the other for a second writer,
// or tell twice.
func checkDestinations(cfg *config.Config, c *cluster, r *report) {
	var before [][]destination
	for i := range cfg.Sinks {
		mine := destinationsOf(&cfg.Sinks[i], c)
		for j, theirs := range before {
			for _, p := range mine {
				if slices.ContainsFunc(theirs, func(other destination) bool { return p.meets(&other) }) {
					r.problem(usage.Errorf("sinks %s and %s write to the same %s: give each its own with the key %s, or leave one out",
						cfg.Sinks[j].Name, cfg.Sinks[i].Name, p.what, p.key))
				}
			}
		}
		before = append(before, mine)
	}
}

// destinationsOf are the places of one sink. What is wrong with it is told by those who build it.
func destinationsOf(s *config.Sink, c *cluster) []destination {
	switch s.Kind() {
	case config.KindKafka:
		return kafkaDestinations(s, c)
	case config.KindNATS:
		return natsDestination(s.NATS)
	}
	path, err := filepath.Abs(s.File.Path)
	if s.File.Path == config.Stdout || err != nil {
		return nil
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return []destination{{what: "file " + path, key: "file.path"}}
}

func natsDestination(n *config.NATS) []destination {
	p := destination{what: "stream " + n.Stream, key: "nats.stream", shared: n.Shared}
	if n.KV != "" {
		p = destination{what: "bucket " + n.KV, key: "nats.kv"}
	}
	if n.Domain != "" {
		p.what += " of domain " + n.Domain
	}
	for _, server := range strings.Split(n.URL, ",") {
		if u, err := url.Parse(strings.TrimSpace(server)); err == nil {
			p.servers = append(p.servers, withPort(u.Host, "4222"))
		}
	}
	return []destination{p}
}

func kafkaDestinations(s *config.Sink, c *cluster) []destination {
	topics, err := kafkaRoutes(s.Kafka, c)
	if err != nil {
		return nil
	}
	var servers []string
	for _, broker := range s.Kafka.Brokers {
		servers = append(servers, withPort(broker, "9092"))
	}
	var all []destination
	options := kafkaOptions(s, c, topics, nil)
	for _, topic := range options.Topics {
		all = append(all, destination{servers: servers, what: "topic " + topic, key: "kafka.topic"})
	}
	if options.TransactionalID != "" { // it fences in both deliveries
		all = append(all, destination{servers: servers, what: "transactional id " + options.TransactionalID, key: "kafka.transactionalId"})
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
