// Command sizing measures what one exporter costs under a load that is named on the command line: so many ConfigMaps of
// 1.5 KiB in a development API server, of which so many a second change, for some sinks. It prints memory, CPU time and
// the size of the state.
package main

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/kubecdc/kubecdc/bench/cluster"
	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/test/kafka"
)

const hands = 32 // writes that may be under way

// load is the command line's.
type load struct {
	objects, rate int
	sinks         string
	before        bool
	span          time.Duration

	in   *cluster.Cluster
	maps corev1client.ConfigMapInterface
}

func main() {
	var l load
	cluster.Main(harness.Benchmark{Name: "sizing", Limit: 20 * time.Minute, Flags: l.flags}, l.run)
}

func (l *load) flags(flags *flag.FlagSet) {
	flags.IntVar(&l.objects, "objects", 10_000, "how many objects there are")
	flags.IntVar(&l.rate, "rate", 100, "how many changes a second")
	flags.StringVar(&l.sinks, "sinks", "file", "kinds of sinks, of file, nats and kafka, joined by commas")
	flags.BoolVar(&l.before, "before", false, "keep each object as it was delivered last (before: true)")
	flags.DurationVar(&l.span, "span", time.Minute, "how long changes are made")
}

// run starts what the sinks need, each a process of its own.
func (l *load) run(ctx context.Context, in *cluster.Cluster) (figures []harness.Figure, err error) {
	var sinks strings.Builder
	for kind := range strings.SplitSeq(l.sinks, ",") {
		var entry string
		switch kind {
		case "file":
			entry = fmt.Sprintf("file: {path: %q}", filepath.Join(in.Dir, "out.ndjson"))
		case "nats":
			server, err := harness.StartNATS(ctx, in.Dir)
			if err != nil {
				return nil, err
			}
			defer server.Kill()
			entry = fmt.Sprintf("nats: {url: %q}", server.URL)
		case "kafka":
			broker, err := kafka.New(ctx, kafka.Options{})
			if err != nil {
				return nil, err
			}
			defer broker.Close()
			entry = fmt.Sprintf("kafka: {brokers: [%s]}", strings.Join(broker.Brokers(), ", "))
		default:
			return nil, fmt.Errorf("sink %q: no such kind; allowed: file, nats, kafka", kind)
		}
		fmt.Fprintf(&sinks, "- {name: %s, %s}\n", kind, entry)
	}
	client, err := in.Client()
	if err != nil {
		return nil, err
	}
	l.in, l.maps = in, client.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	return l.measure(ctx, sinks.String())
}

// measure has the exporter list what there is, and then follow the changes.
func (l *load) measure(ctx context.Context, sinks string) ([]harness.Figure, error) {
	if err := harness.Each(ctx, 0, l.objects, hands, func(i int) error { return l.create(ctx, i) }); err != nil {
		return nil, err
	}
	exporter, err := l.start(ctx, sinks)
	if err != nil {
		return nil, err
	}
	defer exporter.Kill()
	if err := exporter.AwaitRecords(ctx, l.objects); err != nil {
		return nil, err
	}
	took := time.Since(exporter.Began)
	before, err := exporter.Usage()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	changes, err := l.change(ctx)
	if err == nil {
		err = exporter.AwaitRecords(ctx, l.objects+changes)
	}
	if err != nil {
		return nil, err
	}
	span := time.Since(began)
	after, err := exporter.Usage()
	if err != nil {
		return nil, err
	}
	if _, err := exporter.Stop(); err != nil {
		return nil, err
	}
	state, err := sizeOf(l.state())
	const mib = 1 << 20
	return []harness.Figure{
		{Name: "sizing.changes_per_second", Value: float64(changes) / span.Seconds(), Unit: "changes/s"},
		{Name: "sizing.snapshot_seconds", Value: took.Seconds(), Unit: "s"},
		{Name: "sizing.rss_mib", Value: float64(after.RSS) / mib, Unit: "MiB"},
		{Name: "sizing.peak_rss_mib", Value: float64(after.PeakRSS) / mib, Unit: "MiB"},
		{Name: "sizing.cpu_percent", Value: 100 * (after.CPU - before.CPU).Seconds() / span.Seconds(), Unit: "%"},
		{Name: "sizing.state_mib", Value: float64(state) / mib, Unit: "MiB"},
	}, err
}

// start runs the exporter, whose state is empty.
func (l *load) start(ctx context.Context, sinks string) (*harness.Exporter, error) {
	binary, err := harness.Build(ctx)
	if err != nil {
		return nil, err
	}
	const text = "cluster: sizing\nresources: [{resource: configmaps, namespaces: [%s], before: %t}]\nsinks:\n%s"
	path := filepath.Join(l.in.Dir, "config.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, text, metav1.NamespaceDefault, l.before, sinks), 0o600); err != nil {
		return nil, fmt.Errorf("write the configuration: %w", err)
	}
	return harness.StartExporter(binary, l.state(), "-f", path, "--kubeconfig", l.in.Kubeconfig())
}

func (l *load) state() string { return filepath.Join(l.in.Dir, "state") }

func name(i int) string { return fmt.Sprintf("settings-%07d", i) }

// create makes an object of about 1.5 KiB.
func (l *load) create(ctx context.Context, i int) error {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name(i)}, Data: map[string]string{}}
	for line := range 16 {
		object.Data[fmt.Sprintf("key-%02d", line)] = strings.Repeat(fmt.Sprintf("%08x", i*31+line), 9)
	}
	if _, err := l.maps.Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create %s: %w", name(i), err)
	}
	return nil
}

// change changes objects, one after the other, at the rate, and returns how many it changed.
func (l *load) change(ctx context.Context) (changes int, err error) {
	span, over := context.WithTimeout(ctx, l.span)
	defer over()
	made, err := harness.Write(span, l.rate, hands, func(_, turn int) (string, error) {
		patch := fmt.Appendf(nil, `{"data":{"key-00":"change %d"}}`, turn)
		object, err := l.maps.Patch(ctx, name(turn%l.objects), types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			return "", fmt.Errorf("write %s: %w", name(turn%l.objects), err)
		}
		return object.ResourceVersion, nil
	})
	return len(made), err
}

// sizeOf is the size of all files below a directory.
func sizeOf(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}
