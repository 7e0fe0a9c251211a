// Command start measures how soon an exporter streams that is configured with "*", on a real API server that serves
// thousands of custom resources: from its exec to the first change of a Pod in the sink's file and until every watch is
// open, with a new state and after a kill. A proxy between the two counts what the exporter asks.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/kubecdc/kubecdc/bench/cluster"
	"github.com/kubecdc/kubecdc/bench/harness"
)

func main() {
	var b battery
	cluster.Main(harness.Benchmark{Name: "start", Limit: 20 * time.Minute, Flags: b.flags}, b.run, "--max-requests-inflight=3000")
}

// battery is a trial for each number of custom resources.
type battery struct{ few, many, rounds int }

func (b *battery) flags(flags *flag.FlagSet) {
	flags.IntVar(&b.few, "few", 530, "how many custom resources are served at first, beside the API server's own")
	flags.IntVar(&b.many, "many", 3000, "how many then; 0 is not more")
	flags.IntVar(&b.rounds, "rounds", 3, "how often the exporter is killed and started again; the figures are medians")
}

func (b *battery) run(ctx context.Context, in *cluster.Cluster) (figures []harness.Figure, err error) {
	binary, err := harness.Build(ctx)
	if err != nil {
		return nil, err
	}
	proxy, err := newProxy(in.RESTConfig())
	if err != nil {
		return nil, err
	}
	defer proxy.Close()
	kubeconfig, err := harness.Kubeconfig(in.Dir, proxy.URL(), proxy.CA())
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(in.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("build a client: %w", err)
	}
	stop, err := touch(ctx, client)
	if err != nil {
		return nil, err
	}
	defer stop()
	made, numbers := 0, []int{b.few}
	if b.many > b.few {
		numbers = append(numbers, b.many)
	}
	for _, n := range numbers {
		streams, err := define(ctx, client, made, n)
		if err != nil {
			return nil, err
		}
		made = n
		t := &trial{proxy: proxy, binary: binary, kubeconfig: kubeconfig, dir: filepath.Join(in.Dir, fmt.Sprint(n)), streams: streams}
		more, err := t.run(ctx, b.rounds)
		if figures = append(figures, more...); err != nil {
			return figures, err
		}
	}
	return figures, nil
}

// trial is an exporter's lives on one state.
type trial struct {
	proxy                   *proxy
	binary, kubeconfig, dir string
	streams                 int
}

// life is what was measured of one.
type life struct {
	firstPod, ready time.Duration
	asked           counts
	gaps            int // that were announced: none was needed
}

func (t *trial) run(ctx context.Context, rounds int) ([]harness.Figure, error) {
	if err := os.Mkdir(t.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of the state: %w", err)
	}
	first, err := t.live(ctx)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	var again []life
	for range rounds {
		l, err := t.live(ctx)
		if err != nil {
			return nil, fmt.Errorf("start again: %w", err)
		}
		again = append(again, l)
	}
	return append(t.figures("new", first), t.figures("killed", medians(again))...), nil
}

func (t *trial) figures(name string, l life) []harness.Figure {
	name = fmt.Sprintf("start.%s_%d_streams_", name, t.streams)
	streams := float64(t.streams)
	return []harness.Figure{
		{Name: name + "first_pod_seconds", Value: l.firstPod.Seconds(), Unit: "s"},
		{Name: name + "ready_seconds", Value: l.ready.Seconds(), Unit: "s"},
		{Name: name + "lists", Value: float64(l.asked.lists) / streams, Unit: "requests/stream"},
		{Name: name + "watches", Value: float64(l.asked.watches) / streams, Unit: "requests/stream"},
		{Name: name + "gaps", Value: float64(l.gaps), Unit: "gaps"},
		{Name: name + "others", Value: float64(l.asked.versions+l.asked.others) / streams, Unit: "requests/stream"},
	}
}

func medians(lives []life) life {
	var pods, ready []float64
	for _, l := range lives {
		pods, ready = append(pods, float64(l.firstPod)), append(ready, float64(l.ready))
	}
	m := lives[len(lives)-1]
	m.firstPod, m.ready = time.Duration(harness.Median(pods)), time.Duration(harness.Median(ready))
	return m
}

// live starts the exporter, waits until every stream is watching and a Pod has changed, and kills it.
func (t *trial) live(ctx context.Context) (life, error) {
	out := filepath.Join(t.dir, "changes.ndjson")
	pods := &changes{path: out}
	if err := pods.skip(); err != nil {
		return life{}, err
	}
	t.proxy.reset()
	exporter, err := harness.StartExporter(t.binary, "--kubeconfig", t.kubeconfig, "--state-dir", filepath.Join(t.dir, "state"),
		"--resources", "*", "--listen", "127.0.0.1:0", "--sink", "file://"+out)
	if err != nil {
		return life{}, err
	}
	defer exporter.Kill()
	var l life
	err = exporter.Await(ctx, 10*time.Millisecond, func() (bool, error) {
		came, err := pods.came()
		if came && l.firstPod == 0 {
			l.firstPod = time.Since(exporter.Began)
		}
		if t.proxy.watched() >= t.streams && l.ready == 0 {
			l.ready = time.Since(exporter.Began)
		}
		return l.firstPod > 0 && l.ready > 0, err
	})
	l.asked, l.gaps = t.proxy.counts(), pods.gaps
	fmt.Fprintf(os.Stderr, "%d streams: first change of a Pod after %v, all watches after %v; asked %+v, %d gaps\n", t.streams, l.firstPod, l.ready, l.asked, l.gaps)
	return l, err
}
