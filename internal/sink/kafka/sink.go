package kafka

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

var _ sink.Sink = (*Sink)(nil)

// Sink writes into topics. See sink.Sink for what its methods promise.
type Sink struct {
	options  Options
	tuning   tuning
	now      func() time.Time
	codec    batch.Codec
	encoders chan *batch.Encoder // as many as may work at once; nil is one that is not made yet

	cluster  *wire.Cluster // nil after Close
	reached  bool          // a broker has answered
	opened   bool          // Write may be called
	producer wire.Producer
	owner    wire.Producer     // as which the sink had the transactional id last; NoProducer is that it never had
	renewed  time.Time         // when it got it last
	owned    bool              // the producer is the owner
	fenced   bool              // and all topics are fenced, where they need it
	inTx     bool              // a transaction may be open
	topics   map[string]*topic // those that the mark has
	names    []string          // of them, sorted
	markSize int
	turn     uint64              // counts the calls of Write
	refused  map[string]*refusal // by message id: what a broker has refused, and the next Write rejects
	told     map[string]int      // by topic: how many partitions it was told to have
	looked   time.Time           // when partitions were counted
	full     bool                // it was told that no more topics are made for labels
	unread   bool                // it was told that reading is not permitted
	unfenced bool                // it was told that there is no fence

	mu     sync.Mutex        // guards what the goroutines of a Write share
	shut   map[string]closed // topics that data chose and that cannot be written to
	making map[string]bool   // topics that data chose and that this sink has made
	spare  [][]byte          // memory of batches that nobody reads any more
	lost   *sink.LostError
}

// refusal is what a broker said of a message.
type refusal struct {
	reason  string
	err     error
	noPlace bool // nothing can be written to the message's topic
}

// New checks the options and returns a sink that is not open.
func New(options Options) (*Sink, error) {
	if err := options.complete(); err != nil {
		return nil, fmt.Errorf("configure kafka sink: %w", err)
	}
	codec, err := batch.ParseCodec(options.Compression)
	if err != nil {
		return nil, fmt.Errorf("configure kafka sink: %w", err)
	}
	s := &Sink{
		options: options, tuning: defaultTuning(), now: time.Now, codec: codec, producer: wire.NoProducer(), owner: wire.NoProducer(),
		encoders: make(chan *batch.Encoder, runtime.GOMAXPROCS(0)),
		topics:   map[string]*topic{}, refused: map[string]*refusal{},
		told: map[string]int{}, shut: map[string]closed{}, making: map[string]bool{},
	}
	for range cap(s.encoders) {
		s.encoders <- nil
	}
	cluster, err := wire.New(options.Wire)
	if err != nil {
		return nil, fmt.Errorf("configure kafka sink: %w", err)
	}
	cluster.Close() // its options are right; Open makes one that connects
	return s, nil
}

// Open is as in sink.Sink.
func (s *Sink) Open(ctx context.Context, at sink.Opening) error {
	want, err := parseMark(at.Mark)
	if err != nil {
		return err
	}
	s.opened = false
	if err := s.connect(); err != nil {
		return err
	}
	if err := s.reach(ctx); err != nil {
		return err
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	err = s.surveyAgain(ctx, want, at.Behind)
	var lost *sink.LostError
	if err == nil || errors.As(err, &lost) {
		s.opened = true
	}
	return err
}

func (s *Sink) connect() error {
	if s.cluster != nil {
		return nil
	}
	options := s.options.Wire
	options.Throttled = s.throttled
	cluster, err := wire.New(options)
	if err != nil {
		return &sink.PermanentError{Err: fmt.Errorf("configure kafka sink: %w", err)}
	}
	s.cluster = cluster
	return nil
}

// reach finds out, once, whether the brokers can be talked to at all: what cuts connections without a word may be a
// wrong configuration, and only the first Open asks further. Later ones meet brokers that restart.
func (s *Sink) reach(ctx context.Context) error {
	if s.reached {
		return nil
	}
	err := s.persist(ctx, "reach the brokers", s.cluster.Reach)
	s.reached = err == nil
	return err
}

// Write is as in sink.Sink. Any error but a rejection closes the sink.
func (s *Sink) Write(ctx context.Context, messages []sink.Message) (sink.Mark, error) {
	if !s.opened {
		return "", errors.New("write to kafka: the sink is not open: open it")
	}
	if ctx.Err() != nil {
		return "", ended(ctx, "write to kafka", nil)
	}
	plan, rejected, err := s.plan(ctx, messages)
	if rejected != nil && s.raised(ctx, &messages[rejected.Index]) {
		plan, rejected, err = s.plan(ctx, messages)
	}
	if err == nil {
		err = s.deliver(ctx, plan)
	}
	switch {
	case err != nil:
		s.opened = false
		return "", err
	case rejected != nil:
		delete(s.refused, messages[rejected.Index].ID) // told
		return s.mark(), rejected
	}
	return s.mark(), nil
}

// Close is as in sink.Sink. What the last Write left in doubt is settled, if that takes no longer than a moment, so
// that no batch of this sink comes to a log that its successor has read already.
func (s *Sink) Close(ctx context.Context) error {
	s.opened = false
	if s.cluster == nil {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, s.tuning.grace)
	defer cancel()
	s.leave(bounded)
	s.cluster.Close()
	s.cluster = nil
	return nil
}

// leave does its best: what it cannot do, the next Open does, in this process or another one.
func (s *Sink) leave(ctx context.Context) {
	var err error
	if s.options.Delivery == Transactional {
		err = s.abort(ctx)
	} else {
		err = s.settle(ctx)
	}
	if err != nil && ctx.Err() == nil {
		s.again(err)
	}
}
