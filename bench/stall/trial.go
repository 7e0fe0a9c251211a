package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/bench/cluster"
	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/internal/change"
)

// sink is one of the configuration. The namespace is in the subject: a consumer can have the live changes alone.
const sink = `- {name: %[1]s, nats: {url: %[2]q, stream: %[3]s, subject: "%[1]s.{resource}.{namespace}.{name}"}}
`

// streams are what the first two sinks write to.
var streams = [2]string{"FIRST", "SECOND"}

// trial is an exporter with two sinks, and who follows them.
type trial struct {
	*crowd
	in       *cluster.Cluster
	state    string // its directory
	binary   string
	sinks    string // the configuration of the first two
	third    string // and of one more
	exporter *harness.Exporter
	logs     [3]*harness.Stream  // of the sinks
	arrived  [2]harness.Arrivals // of the first sink and the second
	bare     harness.Arrivals    // of a bare watch beside them, until the API server is restarted
	phases   []phase
}

// phase is what was measured of both sinks while something else was done.
type phase struct {
	took      time.Duration
	answers   map[string]time.Time // to the writes, by version
	latencies [2][]float64         // sorted
	bare      []float64            // of the bare watch, sorted
}

// start starts the exporter with the sinks.
func (t *trial) start(sinks string) (err error) {
	file := filepath.Join(t.in.Dir, "exporter.yaml")
	if err := os.WriteFile(file, []byte(sinks), 0o600); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	t.exporter, err = harness.StartExporter(t.binary, "--kubeconfig", t.in.Kubeconfig(), "--state-dir", t.state,
		"--resources", "configmaps", "--listen", "127.0.0.1:0", "--config", file)
	return err
}

// follow begins a bare watch, and consumes the live changes of both streams once the exporter has written something to
// each.
func (t *trial) follow(ctx context.Context) error {
	if err := t.watchBare(ctx); err != nil {
		return err
	}
	for i, name := range streams {
		if err := t.logs[i].Await(ctx, t.exporter, 1); err != nil {
			return err
		}
		filter := fmt.Sprintf("%s.*.%s.>", strings.ToLower(name), live)
		settings := jetstream.OrderedConsumerConfig{FilterSubjects: []string{filter}}
		if err := t.logs[i].Consume(ctx, settings, t.arrived[i].NoteMessage); err != nil {
			return err
		}
	}
	return nil
}

// run measures during the initial snapshot, without a snapshot, during one that the second sink was asked for, after a
// restart of the API server, and while the exporter is killed.
func (t *trial) run(ctx context.Context) ([]harness.Figure, error) {
	initial, err := t.during(ctx, func() error { return t.awaitInitial(ctx) })
	if err != nil {
		return nil, fmt.Errorf("measure the initial snapshot: %w", err)
	}
	quiet, err := t.during(ctx, func() error { return t.pause(ctx) })
	if err != nil {
		return nil, fmt.Errorf("measure without a snapshot: %w", err)
	}
	asked, err := t.during(ctx, func() error { return t.request(ctx) })
	if err != nil {
		return nil, fmt.Errorf("measure a requested snapshot: %w", err)
	}
	restarted, err := t.restart(ctx)
	if err != nil {
		return nil, fmt.Errorf("measure a restart of the API server: %w", err)
	}
	killed, err := t.killAll(ctx)
	if err != nil {
		return nil, fmt.Errorf("measure kills: %w", err)
	}
	took := []harness.Figure{
		{Name: "stall.restart_ms", Value: float64(restarted) / float64(time.Millisecond), Unit: "ms"},
		{Name: "stall.initial_seconds", Value: initial.took.Seconds(), Unit: "s"},
		{Name: "stall.requested_seconds", Value: asked.took.Seconds(), Unit: "s"},
	}
	others := figures(asked.latencies[0], quiet.latencies[0], "stall.")
	own := figures(initial.latencies[1], quiet.latencies[1], "stall.own_")
	bare := figures(asked.bare, quiet.bare, "stall.watch_")
	return slices.Concat(others, own, bare, took, killed), t.write()
}

func figures(latencies, quiet []float64, name string) []harness.Figure {
	return []harness.Figure{
		{Name: name + "worst_ms", Value: harness.Percentile(latencies, 100), Unit: "ms"},
		{Name: name + "p99_ms", Value: harness.Percentile(latencies, 99), Unit: "ms"},
		{Name: name + "quiet_worst_ms", Value: harness.Percentile(quiet, 100), Unit: "ms"},
		{Name: name + "quiet_p99_ms", Value: harness.Percentile(quiet, 99), Unit: "ms"},
	}
}

// during changes objects while something is done, and returns when both sinks have all changes.
func (t *trial) during(ctx context.Context, do func() error) (phase, error) {
	return t.measure(ctx, do, func(phase) {})
}

// measure is during, but for changes that strike out says nobody waits for.
func (t *trial) measure(ctx context.Context, do func() error, strikeOut func(phase)) (p phase, err error) {
	began := time.Now()
	changing, stop := context.WithCancel(ctx)
	defer stop()
	var failed error
	changed := make(chan struct{})
	go func() {
		defer close(changed)
		p.answers, failed = t.change(changing)
	}()
	err = do()
	p.took = time.Since(began)
	stop()
	<-changed
	if err := errors.Join(err, failed); err != nil {
		return p, err
	}
	err = t.exporter.Await(ctx, 50*time.Millisecond, func() (bool, error) {
		strikeOut(p)
		return t.arrived[0].Have(p.answers) && t.arrived[1].Have(p.answers), nil
	})
	for i := range streams {
		p.latencies[i] = t.arrived[i].Latencies(p.answers)
	}
	p.bare = t.bare.Latencies(p.answers)
	t.phases = append(t.phases, p)
	return p, err
}

func (t *trial) pause(ctx context.Context) error {
	select {
	case <-time.After(t.quiet):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// awaitInitial returns when the second sink has the initial snapshot, as the exporter says.
func (t *trial) awaitInitial(ctx context.Context) error {
	return t.exporter.Await(ctx, 50*time.Millisecond, func() (bool, error) {
		var status struct {
			Streams map[string]struct{ ResourceVersion string } // "" until the snapshot is saved
		}
		err := harness.ReadStatus(ctx, t.state, &status) // it may not listen yet
		return err == nil && status.Streams["configmaps"].ResourceVersion != "", nil
	})
}

// restart restarts the API server, and returns how long after that is ready the first sink has the first change. What
// was changed before the exporter watches again, and changed once more, lies in a gap.
func (t *trial) restart(ctx context.Context) (time.Duration, error) {
	if err := t.in.StopAPIServer(); err != nil {
		return 0, err
	}
	if err := t.in.StartAPIServer(ctx); err != nil {
		return 0, err
	}
	ready := time.Now()
	p, err := t.measure(ctx, func() error { return t.pause(ctx) }, t.strikeOutTheGap)
	var first time.Time
	for version := range p.answers {
		if at := t.arrived[0].Of(version); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first.Sub(ready), err
}

// strikeOutTheGap strikes out what neither sink has, if both have the newest change.
func (t *trial) strikeOutTheGap(p phase) {
	newest := ""
	for version := range p.answers {
		if change.CompareVersions(version, newest) > 0 {
			newest = version
		}
	}
	if t.arrived[0].Of(newest).IsZero() || t.arrived[1].Of(newest).IsZero() {
		return
	}
	for version := range p.answers {
		if t.arrived[0].Of(version).IsZero() && t.arrived[1].Of(version).IsZero() {
			delete(p.answers, version)
		}
	}
}

// request asks for a full snapshot, and returns when the second sink has it.
func (t *trial) request(ctx context.Context) error {
	ask := exec.CommandContext(ctx, t.binary, "snapshot", "--state-dir", t.state, "--sink", "second", "--wait")
	if out, err := ask.CombinedOutput(); err != nil {
		return fmt.Errorf("ask for a snapshot: %w: %s", err, out)
	}
	return nil
}

// write writes each change into the file that was asked for: the phase, when the change was answered, and after how
// many milliseconds either sink and the bare watch had it.
func (t *trial) write() error {
	if t.file == "" {
		return nil
	}
	var lines []string
	for i, p := range t.phases {
		for version, at := range p.answers {
			line := fmt.Sprintf("%d %s", i, at.Format("15:04:05.000"))
			for _, to := range []*harness.Arrivals{&t.arrived[0], &t.arrived[1], &t.bare} {
				line += fmt.Sprintf(" %.1f", float64(to.Of(version).Sub(at))/float64(time.Millisecond))
			}
			lines = append(lines, line+"\n")
		}
	}
	slices.Sort(lines)
	if err := os.WriteFile(t.file, []byte(strings.Join(lines, "")), 0o600); err != nil {
		return fmt.Errorf("write the latencies: %w", err)
	}
	return nil
}
