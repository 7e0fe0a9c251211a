// Command latency measures how soon a change is with a consumer: from the answer of a real API server to a write until
// a JetStream consumer has what the exporter's binary made of it, beside a bare client-go watch in the same run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/test/testcluster"
)

// stream is what the exporter writes to.
const stream = "BENCH"

func main() { os.Exit(harness.Main(nil, run)) }

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("latency", flag.ExitOnError)
	span := flags.Duration("span", 30*time.Second, "how long is written at the low rate; half as long at the high one")
	_ = flags.Parse(args) // it exits on an error
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "kubecdc-bench-")
	if err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cluster, err := testcluster.Start(ctx, testcluster.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	server, err := harness.StartNATS(ctx, dir)
	if err != nil {
		return err
	}
	defer server.Kill()
	exporter, err := startExporter(ctx, dir, cluster.Kubeconfig(), server.URL)
	if err != nil {
		return err
	}
	defer exporter.Kill()
	client, err := newClient(cluster.RESTConfig())
	if err != nil {
		return err
	}
	return measure(ctx, course{client: client, exporter: exporter, url: server.URL, span: *span})
}

func startExporter(ctx context.Context, dir, kubeconfig, url string) (*harness.Exporter, error) {
	binary, err := harness.Build(ctx)
	if err != nil {
		return nil, err
	}
	return harness.StartExporter(binary, "--kubeconfig", kubeconfig, "--state-dir", filepath.Join(dir, "state"),
		"--resources", "configmaps", "--listen", "127.0.0.1:0", "--sink", url+"?stream="+stream)
}

// newClient is the writer's and the bare watch's, with the encoding that the API server likes best.
func newClient(config *rest.Config) (*kubernetes.Clientset, error) {
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("build a client: %w", err)
	}
	return client, nil
}

// measure runs the course at each rate.
func measure(ctx context.Context, c course) error {
	follow, err := c.follow(ctx)
	if err != nil {
		return err
	}
	defer follow.stop()
	if err := c.create(ctx); err != nil {
		return err
	}
	var all []harness.Figure
	for i, rate := range []int{10, 500} {
		c.span /= time.Duration(i + 1) // many writes need less time
		acknowledged, err := c.write(ctx, rate)
		if err != nil {
			return err
		}
		if err := c.exporter.Await(ctx, 50*time.Millisecond, func() (bool, error) { return follow.have(acknowledged) }); err != nil {
			return err
		}
		all = append(all, figures(rate, c.span, acknowledged, follow)...)
	}
	return harness.Print(os.Stdout, all)
}

func figures(rate int, span time.Duration, acknowledged map[string]time.Time, follow *followers) []harness.Figure {
	ours, bare := follow.ours.Latencies(acknowledged), follow.bare.Latencies(acknowledged)
	more := added(acknowledged, follow)
	at := fmt.Sprintf("_ms_at_%d", rate)
	return []harness.Figure{
		{Name: "latency.p50" + at, Value: harness.Percentile(ours, 50), Unit: "ms"},
		{Name: "latency.p99" + at, Value: harness.Percentile(ours, 99), Unit: "ms"},
		{Name: "latency.bare_p50" + at, Value: harness.Percentile(bare, 50), Unit: "ms"},
		{Name: "latency.bare_p99" + at, Value: harness.Percentile(bare, 99), Unit: "ms"},
		{Name: "latency.added_p50" + at, Value: harness.Percentile(more, 50), Unit: "ms"},
		{Name: "latency.added_p99" + at, Value: harness.Percentile(more, 99), Unit: "ms"},
		{Name: "latency.writes_per_second" + at[3:], Value: float64(len(acknowledged)) / span.Seconds(), Unit: "writes/s"},
	}
}
