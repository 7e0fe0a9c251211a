package main

import (
	"context"
	"fmt"
	"net"

	natsgo "github.com/nats-io/nats.go"

	"github.com/kubecdc/kubecdc/bench/client"
	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/nats"
)

// The roles of the sink alone. The library sends where it connects by another dialer than the sink's own.
const (
	outbox  = "outbox"
	library = "library"
)

// sinkBatch is how many messages a Write of the sink alone has.
const sinkBatch = 500

// writer is a client that writes messages of a size into the stream with the sink alone, without an exporter around it.
func writer(extra ...natsgo.Option) client.Client {
	return func(ctx context.Context, spec client.Spec, meter *harness.Meter) error {
		to, err := nats.New(nats.Options{URL: spec.Target, Stream: stream, Subjects: []string{"bench.>"}, Extra: extra})
		if err != nil {
			return err
		}
		if err := to.Open(ctx, sink.Opening{After: func() func(string) { return func(string) {} }}); err != nil {
			return err
		}
		defer to.Close(context.WithoutCancel(ctx))
		batch := make([]sink.Message, sinkBatch)
		for number := 0; number < spec.Events; number += sinkBatch {
			fill(batch, number, spec.Size)
			if _, err := to.Write(ctx, batch); err != nil {
				return fmt.Errorf("write to nats-server: %w", err)
			}
			meter.Add(len(batch))
		}
		<-ctx.Done()
		return nil
	}
}

// fill makes the messages from the number on.
func fill(batch []sink.Message, number, size int) {
	value := make([]byte, size)
	for i := range batch {
		batch[i] = sink.Message{
			ID: fmt.Sprintf("0a1b2c3d/pods/shop/web-%d/uid/%d/updated", i, number+i),
			Op: "updated", ResourceVersion: fmt.Sprint(number + i),
			Destination: fmt.Sprintf("bench.core.pods.shop.web-%d", i), Value: value,
			Headers: []sink.Header{{Name: "content-type", Value: "application/cloudevents+json"}},
		}
	}
}

// viaLibrary leaves sending to the client library.
func viaLibrary() natsgo.Option { return natsgo.SetCustomDialer(&net.Dialer{}) }

// send runs the sink alone.
func (m *match) send(ctx context.Context, role string) error {
	spec := client.Spec{Events: m.events, Size: m.size, Target: m.server.URL}
	var measured harness.Measured
	if err := harness.Call(ctx, role, spec, &measured); err != nil {
		return fmt.Errorf("run the sink as %s: %w", role, err)
	}
	m.results.Note(role, measured)
	return m.stream.Remove(ctx)
}
