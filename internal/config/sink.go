package config

import "time"

// Sink is one destination. Exactly one of Kafka, NATS and File is set in a valid one.
type Sink struct {
	Name      string
	Kafka     *Kafka
	NATS      *NATS
	File      *File
	Format    string   // one of Formats
	Updates   string   // one of updates
	Resources []string // of the configuration's resources, by their spelling; none is all
	Queue     Queue
	Actors    bool     // who asked for a change, as the audit webhook says
	Resync    Duration // between two full snapshots of all that the sink takes; 0 is never

	// What of that the sink leaves out, after what its resources do.
	Ops    []string // of Ops; none is all
	Filter string   // "" is all
	Only   []string // paths of what is left in; none is all
	Drop   []string // paths of what is left out
	Redact []string // paths of what becomes keyed hashes

	// What the sink will never take.
	Oversize   string     // one of oversizePolicies
	Trim       []string   // paths that oversizeTrim cuts, after what it cuts by itself
	DeadLetter DeadLetter // where it is kept
}

// DeadLetter is where records go that a sink will never take.
type DeadLetter struct {
	Dir   string // with a directory of each sink in it; "" is deadletters in State.Dir
	Bytes Size   // that the sink's letters may take, about
}

// Queue bounds what waits in memory for one sink.
type Queue struct {
	Bytes   Size
	Records int
	Full    string // one of fullPolicies
	Spool   Size   // on disk, about, where Full is fullSpool or fullCoalesce; reading waits above it
}

const (
	minSpool  = 1 << 20               // less is of no use, and mostly a mistyped unit
	minResync = Duration(time.Minute) // less would list the whole cluster without end
)

func (s *Sink) keys() []key {
	return []key{
		{"name", text(&s.Name),
			"The sink's name in state, metrics and commands. Without it, the name of its kind (`kafka`, `nats`, " +
				"`file`, `stdout`), if the sink is the only one of that kind. A new name makes a new sink, which gets " +
				"everything again."},
		{"kafka", optional(&s.Kafka), "A destination in Apache Kafka."},
		{"nats", optional(&s.NATS).then(s.takeLogin),
			"A destination in NATS JetStream: a stream of changes, or a bucket of present states. Give at most one " +
				"way to log in."},
		{"file", optional(&s.File), "A file with one JSON value per line, or standard output."},
		{"format", firstOf(&s.Format, Formats()),
			"What a message looks like: [formats.md](formats.md). A file takes only `cloudevents` and `debezium`."},
		{"updates", firstOf(&s.Updates, updates()),
			"What an `updated` says: the object, or a JSON Patch of a version that the sink has ([what that " +
				"means](resources.md#updates-as-patches)). `patch` needs `before` in the sink's resources, and a format " +
				"of CloudEvents; not in buckets and compacted topics."},
		{"resources", list(&s.Resources),
			"Which of the configuration's resources the sink takes, spelled as in `resources`. Without it, all."},
		{"actors", flag(&s.Actors),
			"Whether the sink is told which user asked for a change, of the resources that it takes: " +
				"[Who changed it](audit.md). Needs `audit` and `format: cloudevents`."},
		{"queue", section(&s.Queue), "The records that wait in memory for this sink."},
		{"resync", durations(minResync).into(&s.Resync),
			"Time between two full snapshots of everything that the sink takes, at least `1m`. Without it, never."},
		{"ops", list(&s.Ops, operations()...),
			"Operations that the sink takes, of those that its resources stream. Without it, all. Not with `full: coalesce`."},
		{"filter", text(&s.Filter),
			"A CEL expression, as of a resource, over the objects as the resources' rules leave them. A record for " +
				"which it fails passes. Without it, all."},
		{"only", list(&s.Only),
			"Paths to keep for this sink, beside apiVersion, kind and identity, of what the resources' rules leave in. " +
				"Without it, everything."},
		{"drop", list(&s.Drop), "Paths to leave out for this sink."},
		{"redact", list(&s.Redact), "Paths whose values become keyed hashes for this sink."},
		{"oversize", firstOf(&s.Oversize, oversizePolicies()),
			"What happens to an object that is too large for the sink: it is kept as a dead letter with a gap record " +
				"in its place, it is cut until it fits, or this sink stops."},
		{"trim", list(&s.Trim),
			"Paths that `oversize: trim` cuts, in this order, after managedFields and last-applied."},
		{"deadLetter", section(&s.DeadLetter), "Where dead letters are kept: the records that the sink refuses for good."},
	}
}

// takeLogin moves a login in the URL to the keys for it.
func (s *Sink) takeLogin(d *decoder, path string) {
	if err := s.NATS.takeLogin(); err != nil {
		d.problem(under(path, "url"), err.Error())
	}
}

func (d *DeadLetter) keys() []key {
	return []key{
		{"dir", text(&d.Dir), "A directory, with one subdirectory per sink. Without it, `deadletters` in `state.dir`."},
		// Whoever may write objects decides how many are rejected, and must not fill the volume of the saved state.
		{"bytes", or(&d.Bytes, sizes(1<<20), "256Mi"),
			"Limit in bytes, about, of the sink's letters. Above it, a rejected record is not kept: its gap record stands for it."},
	}
}

func (q *Queue) keys() []key {
	return []key{
		// A deeper queue makes nothing faster: it is taken from in batches of 4 MiB at most.
		{"bytes", or(&q.Bytes, sizes(1), "32Mi"), "Limit in bytes."},
		// At 512 bytes a record the two bounds meet; the count is there for the fixed cost of smaller ones.
		{"records", or(&q.Records, counts(1, unlimited), "65536"), "Limit in records."},
		{"full", firstOf(&q.Full, fullPolicies()),
			"What a full queue does: reading waits, records go to the state directory, or only the newest record of " +
				"each object is kept and goes there while the sink is away."},
		{"spool", orWhen(&q.Spool, sizes(minSpool), "10Gi", q.spools()),
			"Limit of the records on disk, at least `1Mi`; above it reading waits. Only with `full: spool` and " +
				"`full: coalesce`."},
	}
}

func (q *Queue) spools() bool { return q.Full == fullSpool || q.Coalesces() }

// Coalesces says whether the queue holds the newest record of each object alone.
func (q *Queue) Coalesces() bool { return q.Full == fullCoalesce }

// Rejects says whether the sink stops at a record that is too large.
func (s *Sink) Rejects() bool { return s.Oversize == oversizeReject }

// Trims says whether a record that is too large is cut until it fits.
func (s *Sink) Trims() bool { return s.Oversize == oversizeTrim }
