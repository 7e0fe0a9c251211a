package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubecdc/kubecdc/bench/harness"
)

// followers are a consumer of the stream and a bare watch.
type followers struct {
	ours, bare *harness.Arrivals
	stream     *harness.Stream
	watch      watch.Interface
	ended      atomic.Bool // the watch
	done       sync.WaitGroup
}

func (f *followers) stop() {
	f.watch.Stop()
	f.stream.Close()
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
	if f.stream, err = harness.OpenStream(c.url, stream); err != nil {
		return nil, err
	}
	if err = f.stream.Await(ctx, c.exporter, 1); err == nil {
		err = f.stream.Consume(ctx, jetstream.OrderedConsumerConfig{}, f.ours.NoteMessage)
	}
	if err == nil {
		f.watch, err = c.client.CoreV1().ConfigMaps(namespace).Watch(ctx, metav1.ListOptions{})
	}
	if err != nil {
		f.stream.Close()
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

// added is by how much later the stream's consumer had each version than the bare watch, sorted, in milliseconds.
func added(acknowledged map[string]time.Time, f *followers) []float64 {
	var all []float64
	for version := range acknowledged {
		all = append(all, float64(f.ours.Of(version).Sub(f.bare.Of(version)))/float64(time.Millisecond))
	}
	slices.Sort(all)
	return all
}
