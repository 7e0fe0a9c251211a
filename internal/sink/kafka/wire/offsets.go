package wire

import "context"

// Bounds are the ends of a partition's log.
type Bounds struct {
	First int64 // the first offset that is there
	End   int64 // the offset of the next record; the last stable offset where only committed ones count
}

// Bounds asks the leaders of the partitions for the ends of their logs.
func (c *Cluster) Bounds(ctx context.Context, topic string, partitions []int32, committed bool) (map[int32]Bounds, error) {
	return nil, errNotBuilt
}
