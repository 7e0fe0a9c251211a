package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/kubecdc/kubecdc/bench/client"
	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/internal/app/selection"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/source"
)

// manyStreams is a number of streams for which the product chooses HTTP/2.
const manyStreams = 1000

// alive is what the exporter's collector finds alive at least while events come: the state's tables and caches, and
// what is queued (GODEBUG=gctrace=1 says 14 to 20 MB). Without it a process that has a stream alone collects with every
// 4 MB, and spends on that an eighth of its CPU time, where the exporter spends a hundredth.
const alive = 16 << 20

// runSource is the product up to the sink: the stream, the queue and the listener, whose sink takes everything at once.
func runSource(ctx context.Context, spec client.Spec, meter *harness.Meter) (err error) {
	rest := make([]byte, alive) // never written to: it takes no memory of the machine
	defer runtime.KeepAlive(rest)
	streams := 1
	if spec.HTTP2 {
		streams = manyStreams
	}
	connection, err := source.NewClient(spec.Config(), streams)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "kubecdc-source-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	store, err := checkpoint.Open(ctx, dir, checkpoint.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	observer := source.NopObserver()
	observer.Failed = func(stream change.Stream, err error) { fmt.Fprintf(os.Stderr, "stream %s: %v\n", stream, err) }
	pods := change.Stream{Resource: change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}}
	informer := source.NewSharedInformer(source.Config{Client: connection, Stream: pods, Histories: store, Observer: observer})
	informer.Serve(pods.Resource.Version)
	return pipeline.Run(ctx, pipeline.Config{
		Sources: []pipeline.Source{selection.SourceOf(pods, informer)}, Store: store, StopTimeout: time.Second, Observer: pipeline.NopObserver(),
		Sinks: []listener.Sink{{
			Name: "drop", Target: &dropSink{meter}, Encoder: dropEncoder{}, Queue: fifo.Limit{Bytes: 64 << 20, Records: 1 << 16},
		}},
	})
}

// dropSink takes everything at once.
type dropSink struct{ meter *harness.Meter }

func (*dropSink) Open(context.Context, sink.Opening) error { return nil }
func (*dropSink) Close(context.Context) error              { return nil }

func (d *dropSink) Write(_ context.Context, batch []sink.Message) (sink.Mark, error) {
	d.meter.Add(len(batch))
	return "dropped", nil
}

// dropEncoder makes a message of nothing.
type dropEncoder struct{}

func (dropEncoder) Encode(_ context.Context, dst []sink.Message, _ *change.Record) ([]sink.Message, error) {
	return append(dst, sink.Message{}), nil
}
func (dropEncoder) Reset() {}
