package kafka

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"golang.org/x/sync/errgroup"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// chosen are the topics that nobody has named: data chose them, by an object's label, namespace or name, or by a
// definition that a wildcard stands for, which is one of Options.Found in the next life. Whoever may make such objects
// must not be able to end the sink: what speaks against the topic is held against the messages alone.
type chosen struct {
	*brokers
	known *known

	mu     sync.Mutex           // guards the following
	shut   map[string]objection // those that cannot be written to
	making map[string]bool      // those that this sink has made
	full   bool                 // it was told that no more are made
}

// objection is why a topic cannot be written to, and since when that is known.
type objection struct {
	refusal *sink.RejectedError
	since   time.Time
}

// mostClosed bounds how many of them are remembered.
const mostClosed = 1000

// has says whether data chose the topic.
func (c *chosen) has(name string) bool {
	return !c.isForetold(name) || slices.Contains(c.options.Found, name)
}

// isForetold says whether Open makes the topic, which does not count as one of a label.
func (c *chosen) isForetold(name string) bool { return slices.Contains(c.options.Topics, name) }

// close remembers what speaks against a topic, for a moment: looking again costs some requests.
func (c *chosen) close(name string, err error) *sink.RejectedError {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.shut) >= mostClosed {
		clear(c.shut)
	}
	c.shut[name] = objection{&sink.RejectedError{Reason: "topic", Err: err, NoPlace: true}, c.now()}
	return c.shut[name].refusal
}

// refusal is what speaks against a topic, nil where nothing is known.
func (c *chosen) refusal(name string) *sink.RejectedError {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now().Sub(c.shut[name].since) > c.tuning.closed {
		return nil
	}
	return c.shut[name].refusal
}

// forbidden turns an error of a request about a topic that data chose into one that Open answers: the next Write
// rejects what is meant for the topic. Other errors stay as they are.
func (c *chosen) forbidden(name string, err error) error {
	if err == nil || name == "" || !refusesTopic(err) || !c.has(name) {
		return err
	}
	c.close(name, err)
	return reopen("%v: open the sink again", err) // not wrapped: it is not permanent
}

// admit says whether one more topic may be made because data chose it.
func (c *chosen) admit(name string) error {
	if c.isForetold(name) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	most := c.options.LabelTopics
	if most == 0 || c.known.made() < most {
		c.making[name] = true
		return nil
	}
	if !c.full {
		c.full = true
		c.options.Notice(fmt.Sprintf("has created %d topics for labels and names, as many as kafka.labelTopics allows: records for further topics become dead letters", most))
	}
	return topicPermanent("open topic %s: it does not exist, and labels and names have made %d topics already: create it, or raise kafka.labelTopics", name, most)
}

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
	reached bool          // a broker has answered

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

// reach connects, and finds out, once, whether the brokers can be talked to at all: what cuts connections without a
// word may be a wrong configuration, and only the first Open asks further. Later ones meet brokers that restart.
func (b *brokers) reach(ctx context.Context) error {
	err := b.connect()
	if err != nil || b.reached {
		return err
	}
	err = b.persist(ctx, "reach the brokers", b.cluster.Reach)
	b.reached = err == nil
	return err
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
