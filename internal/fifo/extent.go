package fifo

// Part is one of the two queues that a spool is made of.
type Part byte

const (
	// Ahead holds records that the sink was being given when they were spooled: it may have some of them. They come
	// before all others, and are never more than one batch.
	Ahead Part = iota
	// Main holds the others.
	Main
)

// Spool is the extent of what is on disk for one sink, by part. The zero value is an empty one.
type Spool [2]Extent

// Extent is one part of a spool.
type Extent struct {
	First, Next    uint64 // numbers of the oldest chunk, and of the one that comes
	Bytes, Records int64  // on disk, after compression
}

// Bytes on disk, of both parts.
func (s *Spool) Bytes() int64 { return s[Ahead].Bytes + s[Main].Bytes }

// Records of both parts.
func (s *Spool) Records() int64 { return s[Ahead].Records + s[Main].Records }

// Empty says whether nothing is spooled.
func (s *Spool) Empty() bool { return s[Ahead].First == s[Ahead].Next && s[Main].First == s[Main].Next }

// amount is bytes on disk and records.
type amount struct{ bytes, records int64 }
