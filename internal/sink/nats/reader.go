package nats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

var _ sink.Reader = (*Reader)(nil)

// Reader reads the stream or the bucket of a sink with an ordered consumer (ADR-17), as any client could.
type Reader struct {
	options  Options
	start    sink.Start
	conn     *conn.Conn // nil before the first Read
	stream   jetstream.Stream
	messages jetstream.MessagesContext
	last     uint64 // the sequence that was read last
}

// NewReader checks the options, which are those of the sink.
func NewReader(options Options, start sink.Start) (*Reader, error) {
	if err := options.complete(); err != nil {
		return nil, fmt.Errorf("configure nats sink: %w", err)
	}
	return &Reader{options: options, start: start}, nil
}

// Read is as in sink.Reader. A stream that is not there yet has no messages.
func (r *Reader) Read(ctx context.Context, each func(*sink.Stored) error) error {
	if err := r.connect(ctx); err != nil {
		return err
	}
	ctx, leave := r.conn.Bound(ctx) // the library would wait for an answer to what the user may not ask
	defer leave()
	err := r.follow(ctx)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		r.start.End = false // all that it will have comes later
		return nil
	}
	if err != nil {
		return r.explain(err)
	}
	info, err := r.stream.Info(ctx)
	if err != nil {
		return r.explain(err)
	}
	if info.State.Msgs == 0 {
		return nil
	}
	return r.take(ctx, info.State.LastSeq, each)
}

func (r *Reader) connect(ctx context.Context) error {
	if r.conn != nil {
		return nil
	}
	to := r.options.Connection(r.options.Name + ", reader")
	// A consumer that may not be deleted ends by itself.
	to.Denied = func(err error) bool { return strings.Contains(err.Error(), ".CONSUMER.DELETE.") }
	// What the consumer asks for during an outage is asked after it.
	to.Extra = append(slices.Clip(to.Extra), natsgo.ReconnectBufSize(natsgo.DefaultReconnectBufSize))
	var err error
	r.conn, err = conn.Dial(ctx, to)
	return err
}

// follow makes the consumer. It is there from the first Read on, and goes on by itself over lost connections.
func (r *Reader) follow(ctx context.Context) error {
	if r.messages != nil {
		return nil
	}
	js, err := jetstream.NewWithAPIPrefix(r.conn.NC, r.conn.API)
	if err != nil {
		return err
	}
	r.stream, err = js.Stream(ctx, r.options.Stream)
	if err != nil {
		return err
	}
	config := jetstream.OrderedConsumerConfig{FilterSubjects: r.options.Subjects, DeliverPolicy: jetstream.DeliverAllPolicy}
	switch {
	case r.start.End:
		config.DeliverPolicy, config.OptStartSeq = jetstream.DeliverByStartSequencePolicy, r.stream.CachedInfo().State.LastSeq+1
	case !r.start.Since.IsZero():
		config.DeliverPolicy, config.OptStartTime = jetstream.DeliverByStartTimePolicy, &r.start.Since
	}
	consumer, err := r.stream.OrderedConsumer(ctx, config)
	if err != nil {
		return err
	}
	if r.start.End {
		r.last = r.stream.CachedInfo().State.LastSeq
	}
	r.messages, err = consumer.Messages()
	return err
}

// How long a message may take before the stream is asked whether there is one: its last sequences may be taken out of
// it, or be of others. soon is for when nothing says that a message is on its way.
const (
	stillness = 2 * time.Second
	soon      = 20 * time.Millisecond
)

// take reads up to the sequence.
func (r *Reader) take(ctx context.Context, last uint64, each func(*sink.Stored) error) error {
	patience := soon
	for r.last < last {
		message, err := r.next(ctx, patience)
		if err != nil || message == nil {
			return err
		}
		meta, err := message.Metadata()
		if err != nil {
			return r.explain(err)
		}
		r.last = meta.Sequence.Stream
		if err := each(r.stored(message, meta)); err != nil {
			return err
		}
		patience = stillness
		if meta.NumPending == 0 { // when it was sent, which may be long ago
			patience = soon
		}
	}
	return nil
}

// next is nil where the stream has nothing more.
func (r *Reader) next(ctx context.Context, patience time.Duration) (jetstream.Msg, error) {
	for {
		bounded, cancel := context.WithTimeout(ctx, patience)
		message, err := r.messages.Next(jetstream.NextContext(bounded))
		cancel()
		switch {
		case err == nil:
			return message, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("read stream %s: %w", r.options.Stream, context.Cause(ctx)) // also what is denied
		case !errors.Is(err, context.DeadlineExceeded):
			return nil, r.explain(err)
		}
		if more, err := r.more(ctx); err == nil && !more {
			return nil, nil
		}
		patience = stillness
	}
}

// more says whether the stream has messages after the one that was read last. What the reader's own consumer says of
// itself leaves out what is on its way, so a new one is asked.
func (r *Reader) more(ctx context.Context) (bool, error) {
	config := jetstream.ConsumerConfig{
		FilterSubjects: r.options.Subjects, AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: stillness,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: r.last + 1,
	}
	if r.last == 0 && !r.start.Since.IsZero() {
		config.DeliverPolicy, config.OptStartSeq, config.OptStartTime = jetstream.DeliverByStartTimePolicy, 0, &r.start.Since
	}
	consumer, err := r.stream.CreateConsumer(ctx, config)
	if err != nil {
		return false, err
	}
	return consumer.CachedInfo().NumPending > 0, nil
}

func (r *Reader) stored(message jetstream.Msg, meta *jetstream.MsgMetadata) *sink.Stored {
	stored := &sink.Stored{
		Place: placeIn(r.options.Stream, meta.Sequence.Stream), Destination: message.Subject(),
		Headers: headersOf(message.Headers()), Value: message.Data(), Time: meta.Timestamp,
	}
	if r.options.KV != "" {
		stored.Row = "key " + stored.Destination
	}
	if stored.Value == nil {
		stored.Value = []byte{}
	}
	switch stored.Header(headerOperation) {
	case operationDelete, operationPurge:
		stored.Erases = true
	}
	return stored
}

// operationPurge is how clients empty a key with its history (ADR-8).
const operationPurge = "PURGE"

func (r *Reader) explain(err error) error {
	if over := r.conn.Over(); over != nil {
		return fmt.Errorf("read stream %s: %w", r.options.Stream, over)
	}
	return fmt.Errorf("read stream %s at %s: %w: check that the sink's user may look the stream up and consume from it", r.options.Stream, r.options.servers(), err)
}

// Close is as in sink.Reader.
func (r *Reader) Close() error {
	if r.messages != nil {
		r.messages.Stop()
	}
	if r.conn != nil {
		r.conn.NC.Close()
	}
	return nil
}
