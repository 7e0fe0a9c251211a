package config

import "time"

// Defaults of the values that have one; those of lists are the lists' first.
const (
	defaultStateDir = "/var/lib/kubecdc"
	// Others than this host are served only where somebody says so: the port also takes what changes state.
	defaultListen   = "127.0.0.1:8080"
	defaultLogLevel = "info"
	defaultStream   = "K8S"
	defaultSubject  = "k8s.{cluster}.{group}.{resource}.{namespace}.{name}"
	defaultTopic    = "k8s.{cluster}.{resource}"
	defaultReplicas = 1
	// A queue that is deeper makes nothing faster: it is taken from in batches of 4 MiB at most.
	defaultBytes = 32 << 20
	// At 512 bytes a record the two bounds of a queue meet; the count is there for the fixed cost of smaller ones.
	defaultRecords = 64 << 10
	defaultSpool   = 10 << 30
	// A question costs two small requests, most of them answered with "not modified".
	defaultInterval = Duration(10 * time.Second)
)

// Default fills in what is not set. Parse and Overlay have called it; calling it again changes nothing.
func (c *Config) Default() {
	fill(&c.State.Dir, defaultStateDir)
	fill(&c.Listen, defaultListen)
	fill(&c.Discovery.Interval, defaultInterval)
	fill(&c.Log.Level, defaultLogLevel)
	fill(&c.Log.Format, LogFormats()[0])
	for i := range c.Sinks {
		c.Sinks[i].fillIn()
	}
	c.nameSinks()
}

func (s *Sink) fillIn() {
	fill(&s.Format, Formats()[0])
	fill(&s.Queue.Bytes, defaultBytes)
	fill(&s.Queue.Records, defaultRecords)
	fill(&s.Queue.Full, FullPolicies()[0])
	if s.Queue.Full == FullSpool || s.Queue.Full == FullCoalesce {
		fill(&s.Queue.Spool, defaultSpool)
	}
	fill(&s.Oversize, OversizePolicies()[0])
	if s.NATS != nil {
		s.NATS.fillIn()
	}
	if s.Kafka != nil {
		s.Kafka.fillIn()
	}
}

func (n *NATS) fillIn() {
	if n.KV == "" {
		fill(&n.Stream, defaultStream)
		fill(&n.Subject, defaultSubject)
	}
	fill(&n.Publish, Publishings()[0])
	fill(&n.Storage, Storages()[0])
	fill(&n.Discard, Discards()[0])
	fill(&n.Replicas, defaultReplicas)
}

// nameSinks gives a sink its kind's name where it is the only one of its kind without a name. A second one would have
// to take its place in the list as its name, and then lose its saved position when the list is reordered.
func (c *Config) nameSinks() {
	nameless := c.namelessKinds()
	for i := range c.Sinks {
		s := &c.Sinks[i]
		if s.Name == "" && nameless[s.Kind()] == 1 {
			s.Name = s.Kind()
		}
	}
}

func (c *Config) namelessKinds() map[string]int {
	count := make(map[string]int)
	for i := range c.Sinks {
		if c.Sinks[i].Name == "" {
			count[c.Sinks[i].Kind()]++
		}
	}
	return count
}

func fill[T comparable](into *T, value T) {
	var unset T
	if *into == unset {
		*into = value
	}
}
