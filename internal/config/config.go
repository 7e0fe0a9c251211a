package config

import (
	"encoding/json"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Config is a whole configuration. The zero value is an empty one. Its JSON form has the file's keys, so that it can
// be shown to a user, and never holds a secret.
type Config struct {
	Cluster   string // "" leaves the name to the kubeconfig
	Resources []Resource
	Sinks     []Sink
	State     State
	HA        *HA    // nil is one exporter alone
	Listen    string // address of metrics and health
	Log       Log
	RedactKey Secret // of the hashes of redacted values; "" is one of the state's own
	Hash      string // one of hashes
	Discovery Discovery
	Snapshot  Snapshot
	Audit     *Audit // nil is none

	origin origin
}

// Discovery is how the exporter learns what the API server serves.
type Discovery struct {
	Interval Duration // between two times that it is asked
}

// Snapshot is how full snapshots are read beside the watches.
type Snapshot struct {
	ObjectsPerSecond int // of all streams together; 0 is as fast as their sinks take them
}

// State is what outlives the process.
type State struct {
	Dir string
	Log *StateLog // nil is none
}

// Log is what the process says about itself.
type Log struct {
	Level  string // one of LogLevels
	Format string // one of LogFormats
}

func (c *Config) keys() []key {
	return []key{
		{"cluster", text(&c.Cluster),
			"The cluster's name in records, subjects and topics. Without it, the kubeconfig's context, or " +
				"`kubernetes` inside a cluster. A state belongs to one name."},
		{"resources", entries(&c.Resources, readResource).orName(),
			"What to watch. An entry is a name, such as `pods`, or a mapping with these keys. A resource may have " +
				"[several entries](resources.md#several-entries), a wildcard one."},
		{"sinks", entries(&c.Sinks, func(d *decoder, path string, n *yaml.Node, s *Sink) { d.mapping(path, n, s.keys()) }),
			"Where changes go. Each sink is one of `kafka`, `nats` and `file`, and has its own position."},
		{"state", section(&c.State),
			"Everything that a restart needs: positions, inventory, marks and spools."},
		{"ha", optional(&c.HA),
			"Several exporters with this configuration: one leads, and another takes over when it is gone: " +
				"[High availability](high-availability.md). Needs `state.log`, and no sink in a file."},
		// Only this host is served unless somebody says otherwise: the port also takes what changes state.
		{"listen", textOr(&c.Listen, "127.0.0.1:8080"),
			"Address of `/metrics`, `/healthz`, `/readyz`, `/statusz` and the status page. Say `:8080` to be read from other " +
				"hosts; what changes state is answered to this host in either case."},
		{"log", section(&c.Log), "What the exporter says about itself, on standard error."},
		{"redactKey", secret(&c.RedactKey),
			"The key of the hashes that replace redacted values. Set it if hashes must outlive the state, or, with " +
				"`hash: comparable`, be equal in several clusters. Without it, a random key in the state."},
		{"hash", firstOf(&c.Hash, hashes()),
			"What these hashes are of. `field`: one field of one object in one cluster, so that a hash tells whether " +
				"that has changed. `comparable`: the value alone, so that equal values have equal hashes, and whoever may " +
				"write one object can guess the values of others ([what that means](resources.md#what-a-hash-proves))."},
		{"discovery", section(&c.Discovery), "How the exporter learns what the API server serves."},
		{"snapshot", section(&c.Snapshot), "How snapshots are read. Live changes never wait for them."},
		{"audit", optional(&c.Audit),
			"The API server's audit webhook is received here, and tells which user asked for a change: " +
				"[Who changed it](audit.md)."},
	}
}

func (s *State) keys() []key {
	return []key{
		{"dir", textOr(&s.Dir, "/var/lib/kubecdc"), "A directory that one process uses at a time."},
		{"log", optional(&s.Log),
			"Every saved state also goes into a broker, a little later. An exporter that starts with an empty directory " +
				"restores it from there: [Surviving a lost volume](state-log.md). Without it, a lost directory is a gap."},
	}
}

func (l *Log) keys() []key {
	return []key{
		{"level", textOr(&l.Level, "info").oneOf(&l.Level, LogLevels()), "Lowest level that is logged."},
		{"format", firstOf(&l.Format, LogFormats()), "Format of log lines."},
	}
}

// minInterval keeps an exporter from being a burden to the API server.
const minInterval = Duration(time.Second)

func (d *Discovery) keys() []key {
	// A question costs two small requests, most of them answered with "not modified".
	return []key{{"interval", or(&d.Interval, durations(minInterval), "10s"),
		"How often the API server is asked what it serves, at least `1s`."}}
}

func (s *Snapshot) keys() []key {
	return []key{{"objectsPerSecond", counts(0, unlimited).into(&s.ObjectsPerSecond),
		"How many objects snapshots read in a second, all together. `0` is as fast as their sinks take them."}}
}

// check finds what is wrong with values that are there.
func (c *Config) check() []Problem {
	k := &checker{origin: c.origin}
	k.keys("", c.keys())
	if strings.TrimFunc(c.Cluster, isBlank) != c.Cluster {
		k.problem("cluster", "%q begins or ends with white space; leave it out", c.Cluster)
	}
	if !isListenAddress(c.Listen) {
		k.problem("listen", "want an address such as :8080 or 127.0.0.1:8080, have %q", shorten(c.Listen))
	}
	c.checkResources(k)
	c.checkSinks(k)
	if c.State.Log != nil {
		c.State.Log.check(k, c.Sinks)
	}
	checkApart(k, c.Sinks, c.State.Log, c.Cluster)
	if c.HA != nil {
		c.HA.check(k, c.State.Log, c.Sinks)
	}
	return k.found
}

// ComparableHashes says whether equal values have equal hashes, wherever they are.
func (c *Config) ComparableHashes() bool { return c.Hash == comparableHashes }

func (c *Config) checkResources(k *checker) {
	for i := range c.Resources {
		c.Resources[i].check(k, item("resources", i))
	}
	checkEntries(k, c.Resources)
}

func (c *Config) checkSinks(k *checker) {
	for i := range c.Sinks {
		c.Sinks[i].check(k, item("sinks", i), c.Resources)
	}
	checkNames(k, c.Sinks)
	if c.Audit != nil {
		c.Audit.check(k, c.Listen)
	}
	checkActors(k, c.Audit, c.Sinks)
	checkInvolved(k, c.Resources, c.Sinks)
}

// Default fills in what is not set. Parse and Overlay have called it; calling it again changes nothing.
func (c *Config) Default() {
	fillIn(c.keys())
	nameSinks(c.Sinks)
	reserve(c.Sinks, c.State.Log)
}

// MarshalJSON shows the configuration with the file's keys, and none of its secrets.
func (c *Config) MarshalJSON() ([]byte, error) { return json.Marshal(show(c.keys())) }

// Keys are all keys of a configuration, those of a section after the section that it stands in.
func Keys() []Key { return describe("", new(Config).keys()) }

// JSONSchema describes a configuration to tools that check one before the exporter does. It refuses nothing that Parse
// takes: any text may hold a ${VARIABLE}.
func JSONSchema() Schema { return schemaOf(new(Config).keys()) }

// Validate says everything that is wrong with the whole configuration, as *Problems. It is meant to be called when
// file and flags are in. It asks no file system, broker or API server.
func (c *Config) Validate() error {
	problems := &Problems{Source: c.origin.source(), List: c.check()}
	if len(c.Resources) == 0 {
		problems.add(Problem{"resources", 0, "none; name what to watch here or with --resources, such as pods,deployments.apps"})
	}
	if len(c.Sinks) == 0 {
		problems.add(Problem{"sinks", 0, "none; say where changes go here or with --sink, such as --sink -"})
	}
	return problems.err()
}
