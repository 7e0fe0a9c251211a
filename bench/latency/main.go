// Command latency measures how soon a change is with a consumer: from the answer of a real API server to a write until
// a JetStream consumer has what the exporter's binary made of it, beside a bare client-go watch in the same run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/kubecdc/kubecdc/bench/cluster"
	"github.com/kubecdc/kubecdc/bench/harness"
)

const (
	stream = "BENCH" // what the exporter writes to
	hands  = 64      // writes that may be under way, each to an object of its own
)

// course is who takes part.
type course struct {
	span     time.Duration
	objects  corev1client.ConfigMapInterface
	exporter *harness.Exporter

	mu         sync.Mutex           // guards the following
	ours, bare map[string]time.Time // when each version came, at a consumer of the stream and at a bare watch
	ended      bool                 // the bare watch
}

func main() {
	c := course{ours: map[string]time.Time{}, bare: map[string]time.Time{}}
	cluster.Main(harness.Benchmark{Name: "latency", Limit: 20 * time.Minute, Flags: c.flags}, c.run)
}

func (c *course) flags(flags *flag.FlagSet) {
	flags.DurationVar(&c.span, "span", 30*time.Second, "how long is written at the low rate; half as long at the high one")
}

func (c *course) run(ctx context.Context, in *cluster.Cluster) (all []harness.Figure, err error) {
	server, err := harness.StartNATS(ctx, in.Dir)
	if err != nil {
		return nil, err
	}
	defer server.Kill()
	binary, err := harness.Build(ctx)
	if err != nil {
		return nil, err
	}
	c.exporter, err = harness.StartExporter(binary, filepath.Join(in.Dir, "state"),
		"--kubeconfig", in.Kubeconfig(), "--resources", "configmaps", "--sink", server.URL+"?stream="+stream)
	if err != nil {
		return nil, err
	}
	defer c.exporter.Kill()
	client, err := in.Client()
	if err != nil {
		return nil, err
	}
	c.objects = client.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	if err := c.follow(ctx, server); err != nil {
		return nil, fmt.Errorf("follow the changes: %w", err)
	}
	for i, rate := range []int{10, 500} {
		c.span /= time.Duration(i + 1) // many writes need less time
		acknowledged, err := c.write(ctx, rate)
		if err == nil {
			err = c.exporter.Await(ctx, 50*time.Millisecond, func() (bool, error) { return c.have(acknowledged) })
		}
		if err != nil {
			return all, err
		}
		at, writes := fmt.Sprintf("_at_%d", rate), float64(len(acknowledged))
		all = append(all,
			harness.Figure{Name: "latency.p99_ms" + at, Value: c.p99(c.ours, acknowledged), Unit: "ms"},
			harness.Figure{Name: "latency.bare_p99_ms" + at, Value: c.p99(c.bare, acknowledged), Unit: "ms"},
			harness.Figure{Name: "latency.writes_per_second" + at, Value: writes / c.span.Seconds(), Unit: "writes/s"})
	}
	return all, nil
}

// follow starts the consumer, when the exporter has made the stream, and the bare watch, which end with the server's
// connection and with ctx.
func (c *course) follow(ctx context.Context, server *harness.NATS) error {
	for hand := range hands {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name(hand)}}
		if _, err := c.objects.Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	err := server.Consume(ctx, c.exporter, stream, jetstream.OrderedConsumerConfig{}, func(m jetstream.Msg) {
		// The id is cluster/resource/namespace/name/uid/version/op.
		if parts := strings.Split(m.Headers().Get("kubecdc-id"), "/"); len(parts) > 2 {
			c.note(c.ours, parts[len(parts)-2])
		}
	})
	if err != nil {
		return err
	}
	watch, err := c.objects.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	go func() {
		for event := range watch.ResultChan() {
			if object, ok := event.Object.(*corev1.ConfigMap); ok {
				c.note(c.bare, object.ResourceVersion)
			}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended = true
	}()
	return nil
}

// note notes that a version has come. Only its first arrival counts.
func (c *course) note(arrivals map[string]time.Time, version string) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, twice := arrivals[version]; !twice {
		arrivals[version] = now
	}
}

// have says whether all versions came to both.
func (c *course) have(versions map[string]time.Time) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for version := range versions {
		if _, came := c.bare[version]; !came && c.ended {
			return false, errors.New("the API server ended the bare watch: measure again on a quieter machine")
		} else if !came || c.ours[version].IsZero() {
			return false, nil
		}
	}
	return true, nil
}

// p99 is how late the versions came, in milliseconds. An arrival before the answer to the write is not late.
func (c *course) p99(arrivals, acknowledged map[string]time.Time) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []float64
	for version, at := range acknowledged {
		all = append(all, max(0, float64(arrivals[version].Sub(at))/float64(time.Millisecond)))
	}
	return harness.Percentile(all, 99)
}

func name(hand int) string { return fmt.Sprintf("map-%02d", hand) }

// write changes objects at the rate, and returns when each version was acknowledged.
func (c *course) write(ctx context.Context, rate int) (map[string]time.Time, error) {
	span, over := context.WithTimeout(ctx, c.span)
	defer over()
	return harness.Write(span, rate, hands, func(hand, turn int) (string, error) {
		patch := fmt.Appendf(nil, `{"data":{"text":"%d at %d a second"}}`, turn, rate)
		object, err := c.objects.Patch(ctx, name(hand), types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			return "", fmt.Errorf("write %s: %w", name(hand), err)
		}
		return object.ResourceVersion, nil
	})
}
