package kafka

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// ends asks for the ends of all partitions of a topic, when all that their leaders have is replicated: a record of a
// crash that a reader cannot see yet would be written again, and come up all the same.
func (b *brokers) ends(ctx context.Context, t *topic) (map[int32]wire.Bounds, error) {
	numbers := make([]int32, len(t.partitions))
	for i := range numbers {
		numbers[i] = int32(i)
	}
	logs, err := b.cluster.LogEnds(ctx, t.name, numbers)
	for wait := newBackOff(); err == nil && wait.GetElapsedTime() < b.tuning.replication; pause(ctx, wait.NextBackOff()) {
		var seen map[int32]wire.Bounds
		if seen, err = b.cluster.Bounds(ctx, t.name, numbers, false); err == nil && covers(seen, logs) {
			return seen, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("read the ends of topic %s: %w", t.name, errUnreplicated)
	}
	return nil, err
}

func covers(seen map[int32]wire.Bounds, logs map[int32]int64) bool {
	for number, end := range logs {
		if seen[number].End < end {
			return false
		}
	}
	return true
}

// locate asks where the topic's partitions end.
func (b *brokers) locate(ctx context.Context, t *topic) error {
	ends, err := b.ends(ctx, t)
	if err != nil {
		return err
	}
	for _, p := range t.partitions {
		p.first, p.next = ends[p.number].First, ends[p.number].End
	}
	return nil
}

// locateAll asks where the partitions of all topics end.
func (b *brokers) locateAll(ctx context.Context, topics []*topic) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(b.tuning.parallel)
	for _, t := range topics {
		group.Go(func() error {
			return b.persist(ctx, "read the ends of topic "+t.name, func(ctx context.Context) error { return b.locate(ctx, t) })
		})
	}
	return group.Wait()
}

// absence tells a topic that was deleted from one that is so new that not every broker knows it.
type absence struct {
	*brokers
	since time.Time
}

func (a *absence) of(ctx context.Context, t *topic) bool {
	if a.since.IsZero() {
		a.since = a.now()
	}
	if _, err := a.cluster.Topic(ctx, t.name); wire.Code(err) != codeUnknownTopic {
		return false
	}
	return a.now().Sub(a.since) > a.tuning.gone
}
