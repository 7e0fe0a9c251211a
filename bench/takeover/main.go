// Command takeover measures what it takes that another exporter leads, with many objects in the state and changes
// all the time. Two exporters share a task: a replay server has the objects and the Lease, and JetStream has the sink
// and the log of the state. It measures from the stop or the kill of the leader until the first change of its successor
// is in the stream.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
	"github.com/kubecdc/kubecdc/bench/rig"
)

func main() {
	var p pair
	rig.Main(harness.Benchmark{Name: "takeover", Limit: time.Hour, Flags: p.flags}, p.run)
}

// stream is the sink's.
const stream = "TAKEOVER"

const config = "cluster: takeover\nresources: [pods]\n" +
	"sinks: [{name: bus, nats: {url: %q, stream: " + stream + ", subject: \"t.{resource}.{namespace}.{name}\"}}]\n" +
	"state: {log: {sink: bus}}\nha: {lease: bench/takeover, duration: %s}\n"

// pair is what the command line asks for, and two exporters that share a task.
type pair struct {
	objects, bytes, rate int
	planned, killed      int
	lease                time.Duration

	world     replay.World
	lines     [2]*rig.Line
	exporters [2]*harness.Exporter
	leads     int // which one

	mu    sync.Mutex // guards the following
	since time.Time
	first time.Time // when the first message came after since; zero is none yet
}

func (p *pair) flags(flags *flag.FlagSet) {
	flags.IntVar(&p.objects, "objects", 1_000_000, "how many objects there are")
	flags.IntVar(&p.bytes, "bytes", 1024, "about how large each is")
	flags.IntVar(&p.rate, "rate", 500, "how many changes a second")
	flags.IntVar(&p.planned, "planned", 10, "how often the leader is stopped")
	flags.IntVar(&p.killed, "killed", 5, "how often it is killed")
	flags.DurationVar(&p.lease, "lease", 10*time.Second, "the duration of the Lease")
}

func (p *pair) run(ctx context.Context, r *rig.Rig) (figures []harness.Figure, err error) {
	server, err := harness.StartNATS(ctx, r.Dir)
	if err != nil {
		return nil, err
	}
	defer server.Kill()
	p.world = replay.World{
		Run: "takeover", Objects: p.objects, ObjectBytes: p.bytes, Rate: p.rate, Events: 100_000_000, Held: true,
	}
	for i := range p.lines {
		if p.lines[i], err = r.NewLine(fmt.Sprint("member-", i), fmt.Sprintf(config, server.URL, p.lease)); err != nil {
			return nil, err
		}
		defer func() {
			if p.exporters[i] != nil {
				p.exporters[i].Kill()
			}
		}()
	}
	if err := p.begin(ctx, server); err != nil {
		return nil, fmt.Errorf("deliver the first snapshot: %w", err)
	}
	planned, err := p.takeovers(ctx, p.planned, func(leader *harness.Exporter) error {
		_, err := leader.Stop()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("stop the leader: %w", err)
	}
	killed, err := p.takeovers(ctx, p.killed, func(leader *harness.Exporter) error {
		leader.Kill()
		return nil
	})
	return []harness.Figure{
		{Name: "takeover.planned_p99_seconds", Value: harness.Percentile(planned, 99), Unit: "s"},
		{Name: "takeover.killed_p99_seconds", Value: harness.Percentile(killed, 99), Unit: "s"},
		{Name: "takeover.lease_seconds", Value: p.lease.Seconds(), Unit: "s"},
	}, err
}

// begin lets the first one deliver all objects, and then the second one stand by.
func (p *pair) begin(ctx context.Context, server *harness.NATS) error {
	if err := p.start(0); err != nil {
		return err
	}
	if err := p.exporters[0].AwaitRecords(ctx, p.objects); err != nil {
		return err
	}
	if err := p.lines[0].Desk.Release(ctx, p.world); err != nil {
		return err
	}
	settings := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverNewPolicy, HeadersOnly: true}
	if err := server.Consume(ctx, p.exporters[0], stream, settings, p.note); err != nil {
		return err
	}
	if err := p.start(1); err != nil {
		return err
	}
	return p.settle(ctx)
}

// start starts a member, with the directory that it has.
func (p *pair) start(i int) (err error) {
	p.exporters[i], err = p.lines[i].Start(p.world)
	return err
}

// settle waits until the log has everything, and the standby has the log.
func (p *pair) settle(ctx context.Context) error {
	leader, standby := p.exporters[p.leads], p.exporters[1-p.leads]
	return standby.Await(ctx, 200*time.Millisecond, func() (bool, error) {
		var one struct {
			HA    struct{ Leads bool }
			State struct{ Log *struct{ LagSeconds float64 } }
		}
		var other struct {
			HA struct {
				Standby *struct {
					Whole      bool
					LagSeconds float64
				}
			}
		}
		if leader.Status(ctx, &one) != nil || standby.Status(ctx, &other) != nil {
			return false, nil
		}
		log, ready := one.State.Log, other.HA.Standby
		return one.HA.Leads && log != nil && log.LagSeconds < 1 && ready != nil && ready.Whole && ready.LagSeconds < 1, nil
	})
}

// takeovers are how many seconds each takes: from how the leader ends until its successor's first change.
func (p *pair) takeovers(ctx context.Context, count int, how func(leader *harness.Exporter) error) (all []float64, err error) {
	for range count {
		began := time.Now()
		if err := how(p.exporters[p.leads]); err != nil {
			return nil, err
		}
		p.await(time.Now())
		p.leads = 1 - p.leads
		var took time.Duration
		err := p.exporters[p.leads].Await(ctx, 20*time.Millisecond, func() (bool, error) {
			at := p.came()
			took = at.Sub(began)
			return !at.IsZero(), nil
		})
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(os.Stderr, "took over in %v\n", took)
		all = append(all, took.Seconds())
		if err := p.start(1 - p.leads); err != nil {
			return nil, err
		}
		if err := p.settle(ctx); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// note notes when a message came.
func (p *pair) note(m jetstream.Msg) {
	about, err := m.Metadata()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && p.first.IsZero() && about.Timestamp.After(p.since) {
		p.first = about.Timestamp
	}
}

// await begins to wait for the first message after a time.
func (p *pair) await(since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since, p.first = since, time.Time{}
}

// came is when it came, zero where it has not yet.
func (p *pair) came() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.first
}
