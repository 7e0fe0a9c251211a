package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubecdc/kubecdc/bench/harness"
)

// followers are a consumer of the stream and a bare watch.
type followers struct {
	ours, bare *harness.Arrivals
	nc         *natsgo.Conn
	watch      watch.Interface
	ended      atomic.Bool // the watch
	done       sync.WaitGroup
}

func (f *followers) stop() {
	f.watch.Stop()
	f.nc.Close()
	f.done.Wait()
}

func (f *followers) have(versions map[string]time.Time) (bool, error) {
	ended, all := f.ended.Load(), f.bare.Have(versions)
	if ended && !all {
		return false, errors.New("the API server ended the bare watch: measure again on a quieter machine")
	}
	return all && f.ours.Have(versions), nil
}

// follow starts both, the consumer when the exporter has made the stream.
func (c *course) follow(ctx context.Context) (f *followers, err error) {
	f = &followers{ours: &harness.Arrivals{}, bare: &harness.Arrivals{}}
	if f.nc, err = natsgo.Connect(c.url); err != nil {
		return nil, fmt.Errorf("connect to nats-server: %w", err)
	}
	if err = c.consume(ctx, f); err == nil {
		f.watch, err = c.client.CoreV1().ConfigMaps(namespace).Watch(ctx, metav1.ListOptions{})
	}
	if err != nil {
		f.nc.Close()
		return nil, fmt.Errorf("follow the changes: %w", err)
	}
	f.done.Go(func() {
		defer f.ended.Store(true)
		for event := range f.watch.ResultChan() {
			if object, ok := event.Object.(*corev1.ConfigMap); ok {
				f.bare.Note(object.ResourceVersion)
			}
		}
	})
	return f, nil
}

// consume reads the stream in order, from its begin on.
func (c *course) consume(ctx context.Context, f *followers) error {
	js, err := jetstream.New(f.nc)
	if err != nil {
		return err
	}
	var found jetstream.Stream
	err = c.exporter.Await(ctx, 50*time.Millisecond, func() (bool, error) {
		found, err = js.Stream(ctx, stream)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return err
	}
	consumer, err := found.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy})
	if err != nil {
		return err
	}
	_, err = consumer.Consume(func(m jetstream.Msg) {
		// The id is cluster/resource/namespace/name/uid/version/op.
		if parts := strings.Split(m.Headers().Get("kubecdc-id"), "/"); len(parts) > 2 {
			f.ours.Note(parts[len(parts)-2])
		}
	})
	return err
}

// added is by how much later the stream's consumer had each version than the bare watch, sorted, in milliseconds.
func added(acknowledged map[string]time.Time, f *followers) []float64 {
	var all []float64
	for version := range acknowledged {
		all = append(all, float64(f.ours.Of(version).Sub(f.bare.Of(version)))/float64(time.Millisecond))
	}
	slices.Sort(all)
	return all
}
