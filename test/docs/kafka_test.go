package docs

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// hearSignals gives the exporter one more sink, in a broker of the world's own, which hears signals.
func (w *world) hearSignals() {
	w.t.Helper()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		w.t.Fatal(err)
	}
	w.world.Cleanup(broker.Close)
	w.kafka = broker.ListenAddrs()[0]
	w.stop()
	lake := fmt.Sprintf("  - {name: lake, kafka: {brokers: [%q], signals: {topic: kubecdc-signals, notifications: kubecdc-notifications}}}\n", w.kafka)
	w.write("config.yaml", fmt.Sprintf(configuration, lake, w.nats.URL()))
	w.start()
	w.await("signals are heard", func() bool { return w.measures("signals_up", "lake") })
}

// measures says whether the sink's gauge is 1.
func (w *world) measures(gauge, sink string) bool {
	answer, err := http.Get(w.address() + "/metrics")
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return err == nil && regexp.MustCompile(`kubecdc_`+gauge+`\{[^}]*sink="`+sink+`"[^}]*\} 1\n`).Match(text)
}

// kcat sends a file as one message, or reads as many messages from the topic's start, and returns the exit code.
func kcat(args []string) int {
	flags := flag.NewFlagSet("kcat", flag.ExitOnError)
	_ = flags.Bool("P", false, "produce")
	reads := flags.Bool("C", false, "consume")
	broker, topic, key := flags.String("b", "", "broker"), flags.String("t", "", "topic"), flags.String("k", "", "key")
	count := flags.Int("c", 0, "messages")
	_ = flags.Parse(args) // exits
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(*broker), kgo.DefaultProduceTopic(*topic), kgo.ConsumeTopics(*topic), kgo.UnknownTopicRetries(1000))
	if err == nil {
		defer client.Close()
		if *reads {
			err = consume(ctx, client, *count)
		} else {
			err = produce(ctx, client, *key, flags.Arg(0))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func produce(ctx context.Context, client *kgo.Client, key, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return client.ProduceSync(ctx, &kgo.Record{Key: []byte(key), Value: []byte(strings.TrimSpace(string(text)))}).FirstErr()
}

func consume(ctx context.Context, client *kgo.Client, count int) error {
	for ctx.Err() == nil {
		for _, record := range client.PollFetches(ctx).Records() {
			fmt.Println(string(record.Value))
			if count--; count == 0 {
				return nil
			}
		}
	}
	return ctx.Err()
}
