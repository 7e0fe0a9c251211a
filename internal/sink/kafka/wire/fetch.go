package wire

import "context"

// FetchRequest reads one partition. It returns at once, also with nothing.
type FetchRequest struct {
	Topic     string
	Partition int32
	Offset    int64
	MaxBytes  int  // of the records; the first batch is returned whole however large it is; 0 is 1 MiB
	Committed bool // up to the last stable offset only, with Aborted
}

// FetchResult is what lies at the offset.
type FetchResult struct {
	// Records are record batches as the broker stores them: the first may begin before the offset, the last may be cut
	// off, batches may be empty, control batches are in between. The caller owns it.
	Records       []byte
	HighWatermark int64
	LastStable    int64
	LogStart      int64
	Aborted       []Aborted // only with Committed; sorted by FirstOffset
}

// Aborted is a transaction of which Records may hold batches that do not count: those of the producer from FirstOffset
// to its next abort marker.
type Aborted struct {
	ProducerID  int64
	FirstOffset int64
}

// Fetch reads from the partition's leader, once. It is an *Error with code 1 where the log does not hold the offset:
// below its start, or above its end.
func (c *Cluster) Fetch(ctx context.Context, request FetchRequest) (FetchResult, error) {
	return FetchResult{}, errNotBuilt
}
