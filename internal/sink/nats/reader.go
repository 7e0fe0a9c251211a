package nats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

var _ sink.Reader = (*Reader)(nil)

// Reader reads the stream or the bucket of a sink with consumers, as any client could.
type Reader struct {
	options Options
	start   sink.Start
	conn    *conn.Conn // nil before the first Read
	last    uint64     // the sequence that was read last
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
	if r.conn == nil {
		to := r.options.Connection(r.options.Name + ", reader")
		// What is asked for during an outage is asked after it.
		to.Extra = append(slices.Clip(to.Extra), natsgo.ReconnectBufSize(natsgo.DefaultReconnectBufSize))
		c, err := conn.Dial(ctx, to)
		if err != nil {
			return err
		}
		r.conn = c
	}
	ctx, leave := r.conn.Bound(ctx) // the library would wait for an answer to what the user may not ask
	defer leave()
	js, err := jetstream.NewWithAPIPrefix(r.conn.NC, r.conn.API)
	if err != nil {
		return err
	}
	stream, err := js.Stream(ctx, r.options.Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		r.start.End = false // all that it will have comes later
		return nil
	}
	if err != nil {
		return r.explain(ctx, err)
	}
	end := stream.CachedInfo().State.LastSeq
	if r.start.End {
		r.start.End, r.last = false, end
	}
	for r.last < end {
		if whole, err := r.part(ctx, stream, each); err != nil || whole {
			return err
		}
	}
	return nil
}

// messageTimeout is how long a message may take. A consumer that nothing is asked of for so long ends.
const messageTimeout = 5 * time.Second

// part reads what a new consumer has, and says whether that was all that it said to have. Messages that are lost on
// their way are for the next one.
func (r *Reader) part(ctx context.Context, stream jetstream.Stream, each func(*sink.Stored) error) (whole bool, err error) {
	config := jetstream.ConsumerConfig{
		FilterSubjects: r.options.Subjects, AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: messageTimeout,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: r.last + 1,
	}
	if r.last == 0 && !r.start.Since.IsZero() {
		config.DeliverPolicy, config.OptStartSeq, config.OptStartTime = jetstream.DeliverByStartTimePolicy, 0, &r.start.Since
	}
	consumer, err := stream.CreateConsumer(ctx, config)
	if err != nil {
		return false, r.explain(ctx, err)
	}
	const atOnce = 500
	pending := consumer.CachedInfo().NumPending
	for read := uint64(0); read < pending; {
		n, err := r.fetch(ctx, consumer, read, min(atOnce, pending-read), each)
		if read += n; err != nil || n == 0 {
			return false, err
		}
	}
	return true, nil
}

// fetch reads up to so many messages of the consumer, which has sent others before, without a hole.
func (r *Reader) fetch(ctx context.Context, of jetstream.Consumer, before, most uint64, each func(*sink.Stored) error) (n uint64, err error) {
	bounded, cancel := context.WithTimeout(ctx, messageTimeout)
	defer cancel()
	batch, err := of.Fetch(int(most), jetstream.FetchContext(bounded))
	if err != nil {
		return 0, r.explain(ctx, err)
	}
	for message := range batch.Messages() {
		meta, err := message.Metadata()
		if err != nil {
			return n, r.explain(ctx, err)
		}
		if meta.Sequence.Consumer != before+n+1 {
			return 0, nil
		}
		if err := each(r.stored(message, meta)); err != nil {
			return n, err
		}
		n, r.last = n+1, meta.Sequence.Stream
	}
	if ctx.Err() != nil {
		return n, r.explain(ctx, ctx.Err())
	}
	return n, nil
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

// explain also tells of what is denied, which ends the context.
func (r *Reader) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("read stream %s: %w", r.options.Stream, context.Cause(ctx))
	}
	return fmt.Errorf("read stream %s at %s: %w: check that the sink's user may look the stream up and consume from it", r.options.Stream, r.options.servers(), err)
}

// Close is as in sink.Reader.
func (r *Reader) Close() error {
	if r.conn != nil {
		r.conn.NC.Close()
	}
	return nil
}
