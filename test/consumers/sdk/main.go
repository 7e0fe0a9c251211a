// Command sdk reads a topic of Kafka or a stream of JetStream from its start to its present end with the official Go
// SDK of CloudEvents, its transports included, and prints each event on a line: what an application gets that knows
// nothing of who wrote it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"github.com/cloudevents/sdk-go/protocol/kafka_sarama/v2"
	"github.com/cloudevents/sdk-go/protocol/nats_jetstream/v2"
	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats.go"
)

// limit bounds the reading.
const limit = 2 * time.Minute

// consumer is the SDK's, of either transport.
type consumer interface {
	OpenInbound(ctx context.Context) error
	Receive(ctx context.Context) (binding.Message, error)
}

// line is what is printed of a message.
type line struct {
	Mode       string          `json:"mode"` // "structured", "binary" or, of a tombstone, "unknown"
	Attributes map[string]any  `json:"attributes,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
}

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: sdk kafka BROKERS TOPIC RECORDS | sdk nats URL STREAM all")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	open := openKafka
	if os.Args[1] == "nats" {
		open = openNATS
	}
	c, count, err := open(os.Args[2], os.Args[3])
	if err == nil {
		err = read(ctx, c, count)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// openKafka returns a consumer of a group of its own. How many records the topic has is for the caller to say: between
// its offsets are markers of transactions, too.
func openKafka(brokers, topic string) (consumer, int, error) {
	config := sarama.NewConfig()
	config.Version = sarama.V2_8_0_0
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	client, err := sarama.NewClient(strings.Split(brokers, ","), config)
	if err != nil {
		return nil, 0, fmt.Errorf("connect to Kafka: %w", err)
	}
	count, err := strconv.Atoi(os.Args[4])
	if err != nil {
		return nil, 0, fmt.Errorf("read the number of records: %w", err)
	}
	return kafka_sarama.NewConsumerFromClient(client, "cloudevents-"+topic, topic), count, nil
}

// openNATS returns a consumer of the whole stream, and how many messages it has.
func openNATS(url, stream string) (consumer, int, error) {
	conn, err := nats.Connect(url)
	if err != nil {
		return nil, 0, fmt.Errorf("connect to NATS: %w", err)
	}
	js, err := conn.JetStream()
	if err != nil {
		return nil, 0, fmt.Errorf("connect to JetStream: %w", err)
	}
	info, err := js.StreamInfo(stream)
	if err != nil {
		return nil, 0, fmt.Errorf("look up the stream: %w", err)
	}
	options := []nats.SubOpt{nats.BindStream(stream), nats.OrderedConsumer()}
	c, err := nats_jetstream.NewConsumerFromConn(conn, stream, info.Config.Subjects[0], nil, options)
	if err != nil {
		return nil, 0, fmt.Errorf("make the consumer: %w", err)
	}
	return c, int(info.State.Msgs), nil
}

// read prints so many messages.
func read(ctx context.Context, c consumer, count int) error {
	failed := make(chan error, 1)
	go func() { failed <- c.OpenInbound(ctx) }() // it ends with the process
	out := json.NewEncoder(os.Stdout)
	for n := range count {
		m, err := c.Receive(ctx)
		if err != nil {
			select {
			case opening := <-failed:
				err = errors.Join(err, opening)
			default:
			}
			return fmt.Errorf("receive message %d of %d: %w", n, count, errors.Join(err, ctx.Err()))
		}
		one, err := describe(ctx, m)
		if err := errors.Join(err, m.Finish(nil)); err != nil {
			return fmt.Errorf("read message %d of %d: %w", n, count, err)
		}
		if err := out.Encode(one); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}

func describe(ctx context.Context, m binding.Message) (line, error) {
	one := line{Mode: m.ReadEncoding().String()}
	if m.ReadEncoding() == binding.EncodingUnknown {
		return one, nil
	}
	e, err := binding.ToEvent(ctx, m)
	if err != nil {
		return one, err
	}
	if err := e.Validate(); err != nil {
		return one, err
	}
	one.Attributes, one.Data = attributes(e), e.Data()
	return one, nil
}

// attributes are the event's, with the values as text.
func attributes(e *event.Event) map[string]any {
	all := map[string]any{
		"specversion": e.SpecVersion(), "id": e.ID(), "source": e.Source(), "type": e.Type(), "subject": e.Subject(),
		"time": e.Time().Format(time.RFC3339Nano),
	}
	if e.DataContentType() != "" {
		all["datacontenttype"] = e.DataContentType()
	}
	for name, value := range e.Extensions() {
		all[name] = fmt.Sprint(value)
	}
	return all
}
