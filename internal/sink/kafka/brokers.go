package kafka

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"golang.org/x/sync/errgroup"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// ends asks for the ends of all partitions of a topic, when all that their leaders have is replicated: a record of a
// crash that a reader cannot see yet would be written again, and come up all the same.
func (b *brokers) ends(ctx context.Context, t *topic) ([]wire.Bounds, error) {
	logs, err := b.cluster.LogEnds(ctx, t.name, len(t.partitions))
	for wait := newBackOff(); err == nil && wait.GetElapsedTime() < b.tuning.replication; sink.Pause(ctx, wait.NextBackOff(), nil) {
		var seen []wire.Bounds
		if seen, err = b.cluster.Bounds(ctx, t.name, len(logs), false); err != nil {
			break
		}
		hidden := false
		for i, end := range logs {
			hidden = hidden || seen[i].End < end
		}
		if !hidden {
			return seen, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("read the ends of topic %s: %w", t.name, errUnreplicated)
	}
	return nil, err
}

// locate asks where the topic's partitions end.
func (b *brokers) locate(ctx context.Context, t *topic) error {
	ends, err := b.ends(ctx, t)
	for i, end := range ends {
		t.partitions[i].first, t.partitions[i].next = end.First, end.End
	}
	return err
}

// locateAll asks where the partitions of all topics end.
func (b *brokers) locateAll(ctx context.Context, topics []*topic) error {
	return together(ctx, b.tuning.parallel, topics, func(ctx context.Context, t *topic) error {
		return b.persist(ctx, "read the ends of topic "+t.name, func(ctx context.Context) error { return b.locate(ctx, t) })
	})
}

// together does it with all, so many at once, until the first failure.
func together[T any](ctx context.Context, limit int, all []T, do func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(limit)
	for _, one := range all {
		group.Go(func() error { return do(ctx, one) })
	}
	return group.Wait()
}

// absence tells a topic that was deleted from one that is so new that not every broker knows it.
func (b *brokers) absence() (isGone func(context.Context, *topic) bool) {
	var since time.Time // when it was asked first
	return func(ctx context.Context, t *topic) bool {
		if since.IsZero() {
			since = b.now()
		}
		_, err := b.cluster.Topic(ctx, t.name)
		return wire.Code(err) == kerr.UnknownTopicOrPartition.Code && b.now().Sub(since) > b.tuning.gone
	}
}

// brokers is the way to a cluster: the connection, what is tried again over it, and who is told.
type brokers struct {
	options *Options
	tuning  tuning
	now     func() time.Time
	cluster *wire.Cluster // nil while there is no connection

	mu sync.Mutex // one goroutine tells at a time
}

// newBrokers checks the options, and connects to nobody.
func newBrokers(options *Options) (*brokers, error) {
	if _, err := wire.New(options.Wire); err != nil {
		return nil, err
	}
	return &brokers{options: options, tuning: defaultTuning(), now: time.Now}, nil
}

func (b *brokers) connect() (err error) {
	if b.cluster != nil {
		return nil
	}
	options := b.options.Wire
	options.Throttled = func(time.Duration) { b.tell("throttled", errThrottled) }
	if b.cluster, err = wire.New(options); err != nil {
		return &sink.PermanentError{Err: fmt.Errorf("configure kafka sink: %w", err)}
	}
	return nil
}

func (b *brokers) disconnect() {
	if b.cluster != nil {
		b.cluster.Close()
		b.cluster = nil
	}
}

// reach connects, and waits until a broker answers.
func (b *brokers) reach(ctx context.Context) error {
	if err := b.connect(); err != nil {
		return err
	}
	return b.persist(ctx, "reach the brokers", b.cluster.Reach)
}

// persist makes one attempt after the other until there is no error, or none that another attempt can mend, or ctx
// ends.
func (b *brokers) persist(ctx context.Context, verb string, attempt func(context.Context) error) error {
	wait := newBackOff()
	for attempts := 1; ; attempts++ {
		if ctx.Err() != nil {
			return sink.Ended(ctx, verb, nil)
		}
		err := b.lingering(ctx, attempt)
		if err == nil {
			return nil
		}
		switch class := wire.Classify(err); {
		case decided(err), class != wire.Retriable && class != wire.Fatal:
			return err
		case class == wire.Fatal: // only a person can mend it
			return wire.Explain(err)
		}
		if ctx.Err() != nil {
			return sink.Ended(ctx, verb, err)
		}
		if wire.Code(err) != kerr.ConcurrentTransactions.Code || attempts > endings {
			b.again(err)
		}
		sink.Pause(ctx, wait.NextBackOff(), nil)
	}
}

// endings is how often a transaction may be told that the one before is still ending before that is worth a word: about
// a third of a second. Where one follows the other, the coordinator nearly always says so once or twice.
const endings = 6

// lingering gives an attempt that is under way when ctx ends a moment to end by itself: what comes of it is then known,
// and need not be found out.
func (b *brokers) lingering(ctx context.Context, attempt func(context.Context) error) error {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(b.tuning.grace, cancel) })
	defer stop()
	return attempt(late)
}

// again tells of an error, and of what may mend it, before the next attempt.
func (b *brokers) again(err error) {
	b.cluster.Refresh()
	b.tell(reason(err), wire.Explain(err))
}

func (b *brokers) tell(reason string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.options.Retry(reason, err)
}
