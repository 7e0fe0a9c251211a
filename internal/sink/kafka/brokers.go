package kafka

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

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
	cluster, err := wire.New(options.Wire)
	if err != nil {
		return nil, err
	}
	cluster.Close()
	return &brokers{options: options, tuning: defaultTuning(), now: time.Now}, nil
}

func (b *brokers) connect() error {
	if b.cluster != nil {
		return nil
	}
	options := b.options.Wire
	options.Throttled = b.throttled
	cluster, err := wire.New(options)
	if err != nil {
		return &sink.PermanentError{Err: fmt.Errorf("configure kafka sink: %w", err)}
	}
	b.cluster = cluster
	return nil
}

func (b *brokers) disconnect() {
	if b.cluster != nil {
		b.cluster.Close()
		b.cluster = nil
	}
}

// reach finds out, once, whether the brokers can be talked to at all: what cuts connections without a word may be a
// wrong configuration, and only the first Open asks further. Later ones meet brokers that restart.
func (b *brokers) reach(ctx context.Context) error {
	if b.reached {
		return nil
	}
	err := b.persist(ctx, "reach the brokers", b.cluster.Reach)
	b.reached = err == nil
	return err
}

// persist makes one attempt after the other until there is no error, or none that another attempt can mend, or ctx
// ends.
func (b *brokers) persist(ctx context.Context, verb string, attempt func(context.Context) error) error {
	wait := newBackOff()
	for attempts := 1; ; attempts++ {
		if ctx.Err() != nil {
			return ended(ctx, verb, nil)
		}
		err := b.lingering(ctx, attempt)
		if err == nil {
			return nil
		}
		if class := wire.Classify(err); decided(err) || class != wire.Retriable {
			return classify(err)
		}
		if ctx.Err() != nil {
			return ended(ctx, verb, err)
		}
		if wire.Code(err) != codeConcurrent || attempts > endings {
			b.again(err)
		}
		pause(ctx, wait.NextBackOff())
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

// again tells of an error, and of what may mend it, before the next attempt, and makes the wire look for the brokers
// anew.
func (b *brokers) again(err error) {
	b.cluster.Refresh()
	b.tell(reason(err), wire.Explain(err))
}

func (b *brokers) tell(reason string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.options.Retry(reason, err)
}

// throttled tells that a broker's quota is used up.
func (b *brokers) throttled(time.Duration) { b.tell("throttled", errThrottled) }
