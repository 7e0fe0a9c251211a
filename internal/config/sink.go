package config

// Sink is one destination. Exactly one of Kafka, NATS and File is set in a valid one.
type Sink struct {
	Name      string   `key:"name"`
	Kafka     *Kafka   `key:"kafka"`
	NATS      *NATS    `key:"nats"`
	File      *File    `key:"file"`
	Format    string   `key:"format" of:"cloudevents cloudevents-binary debezium object" default:"cloudevents"`
	Updates   string   `key:"updates" of:"whole patch" default:"whole"`
	Resources []string `key:"resources"`
	Actors    bool     `key:"actors"`
	Queue     Queue    `key:"queue"`
	Resync    Duration `key:"resync" min:"1m"`

	// What of that the sink leaves out, after what its resources do.
	Ops    []string `key:"ops" of:"added updated deleted"`
	Filter string   `key:"filter"`
	Only   []string `key:"only"`
	Drop   []string `key:"drop"`
	Redact []string `key:"redact"`

	// What the sink will never take.
	Oversize   string     `key:"oversize" of:"deadletter trim reject" default:"deadletter"`
	Trim       []string   `key:"trim"`
	DeadLetter DeadLetter `key:"deadLetter"`
}

// Formats are the values of Sink.Format; the first is the default.
func Formats() []string { return allowedBy[Sink]("format") }

// DeadLetter is where records go that a sink will never take. Whoever may write objects decides how many these are, and
// must not fill the volume of the saved state.
type DeadLetter struct {
	Dir   string `key:"dir"`
	Bytes Size   `key:"bytes" default:"256Mi" min:"1Mi"`
}

// Queue bounds what waits in memory for one sink. A deeper one makes nothing faster: it is taken from in batches of
// 4 MiB at most. The number of records is there for the fixed cost of small ones; at 512 bytes the two bounds meet.
type Queue struct {
	Bytes   Size   `key:"bytes" default:"32Mi" min:"1"`
	Records int    `key:"records" default:"65536" min:"1"`
	Full    string `key:"full" of:"block spool coalesce" default:"block"`
	Spool   Size   `key:"spool" default:"10Gi" min:"1Mi"`
}

// applies says whether the key has a default.
func (q *Queue) applies(key string) bool { return key != "spool" || q.spools() }

func (q *Queue) spools() bool { return q.Full == fullSpool || q.Coalesces() }

// Coalesces says whether the queue holds the newest record of each object alone.
func (q *Queue) Coalesces() bool { return q.Full == fullCoalesce }

// Rejects says whether the sink stops at a record that is too large.
func (s *Sink) Rejects() bool { return s.Oversize == oversizeReject }

// Trims says whether a record that is too large is cut until it fits.
func (s *Sink) Trims() bool { return s.Oversize == oversizeTrim }
