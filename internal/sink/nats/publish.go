package nats

// The values of Options.Publish.
const (
	PublishAuto    = "auto"    // fast where server and stream allow it, ordered elsewhere
	PublishFast    = "fast"    // fast ingest (ADR-50); needs server 2.14 and a stream with allow_batched
	PublishAtomic  = "atomic"  // atomic batches (ADR-50), for servers that sync always; needs 2.12 and allow_atomic
	PublishOrdered = "ordered" // one acknowledgement a message; any server
)

// The levels of the JetStream API (ADR-44) from which on a server knows batches.
const (
	levelAtomic = 2 // server 2.12
	levelFast   = 4 // server 2.14
)

// publishMode is how messages are sent.
type publishMode int

const (
	modeOrdered publishMode = iota // one acknowledgement a message
	modeFast                       // one for many, fast ingest
	modeAtomic                     // one for a batch that is stored as a whole
)
