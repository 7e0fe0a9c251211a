package pipeline

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// hanging is a sink that takes nothing.
type hanging struct{ empty }

func (hanging) Write(ctx context.Context, batch []sink.Message) (sink.Mark, error) {
	if len(batch) == 0 {
		return "0", nil
	}
	<-ctx.Done()
	return "", context.Cause(ctx)
}

// named encodes a record as a message without a word.
type named struct{}

func (named) Encode(_ context.Context, dst []sink.Message, rec *change.Record) ([]sink.Message, error) {
	return append(dst, sink.Message{ID: rec.UID}), nil
}

func (named) Reset() {}

// TestI4WhatWaitsTooLongGoesToDiskThoughNothingElseHappens: a sink is away, its queue has room, and nothing changes any
// more. Its position must move on before the API server forgets.
func TestI4WhatWaitsTooLongGoesToDiskThoughNothingElseHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		disk.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 40, TotalBytes: 1 << 40})
		options := checkpoint.OnFS(disk)
		options.Logger = slog.New(slog.DiscardHandler)
		store, err := checkpoint.Open(t.Context(), "state", options)
		must(t, err)
		r := &run{
			Config: &Config{Store: store, Observer: NopObserver()}, books: listener.NewBooks(store, listener.NopObserver(), nil),
			soon: sink.NewBell(), now: sink.NewBell(), owing: owing{wake: sink.NewBell()},
		}
		config := listener.Config{
			Store: store, Observer: listener.NopObserver(), Work: r.work, Stops: listener.NewStops(2), Serve: func(*listener.Intake) {},
			Streams: func() []*change.Stream { return nil },
		}
		bus, err := listener.New(0, &listener.Sink{
			Name: "bus", Target: hanging{}, Encoder: named{}, Actors: true, Spool: 1 << 20, Queue: fifo.Limit{Bytes: 1 << 20, Records: 100},
		}, &config, r.books)
		must(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		go func() { ended <- bus.Run(ctx, ctx) }()
		go func() { ended <- r.commit(ctx) }()
		synctest.Wait()
		rec := change.Record{Stream: &configmaps, Op: change.Actor, UID: "u", Received: time.Now()}
		must(t, bus.Push(ctx, &rec))
		time.Sleep(fifo.SpillAge)
		if synctest.Wait(); bus.Unsaved() != 1 {
			t.Errorf("%d records wait in memory after %s", bus.Unsaved(), fifo.SpillAge)
		}
		time.Sleep(fifo.SpillAge / 2)
		if synctest.Wait(); bus.Unsaved() != 0 {
			t.Errorf("%d records wait in memory, half as long again", bus.Unsaved())
		}
		stop()
		<-ended
		<-ended
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
}
