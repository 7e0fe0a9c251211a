package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
	"github.com/kubecdc/kubecdc/bench/rig"
)

// pair is two exporters that share a task.
type pair struct {
	*battery
	rig     *rig.Rig
	url     string
	world   replay.World
	stream  *stream
	members [2]*member
	leads   int // which one
}

// member is one of them.
type member struct {
	*rig.Line
	exporter *harness.Exporter
}

const config = "cluster: takeover\n" + sinks + "state: {log: {sink: bus}}\nha: {lease: bench/takeover, duration: %s}\n"

// every is how often something is looked at that is waited for.
const every = 20 * time.Millisecond

// run measures one thing after the other.
func (p *pair) run(ctx context.Context) ([]harness.Figure, error) {
	if err := p.begin(ctx); err != nil {
		return nil, fmt.Errorf("deliver the first snapshot: %w", err)
	}
	lags, err := p.lags(ctx)
	if err != nil {
		return nil, fmt.Errorf("measure the lag of the log: %w", err)
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
	if err != nil {
		return nil, fmt.Errorf("kill the leader: %w", err)
	}
	empty, err := p.fromNothing(ctx)
	return []harness.Figure{
		{Name: "takeover.planned_p99_seconds", Value: harness.Percentile(planned, 99), Unit: "s"},
		{Name: "takeover.killed_p99_seconds", Value: harness.Percentile(killed, 99), Unit: "s"},
		{Name: "takeover.lease_seconds", Value: p.lease.Seconds(), Unit: "s"},
		{Name: "takeover.state_log_lag_p99_seconds", Value: harness.Percentile(lags, 99), Unit: "s"},
		{Name: "takeover.empty_first_change_seconds", Value: empty.Seconds(), Unit: "s"},
	}, err
}

// begin lets the first one deliver all objects, and then the second one stand by.
func (p *pair) begin(ctx context.Context) error {
	open, err := harness.OpenStream(p.url, "TAKEOVER")
	if err != nil {
		return err
	}
	p.stream = &stream{Stream: open}
	if err := p.start(0); err != nil {
		return err
	}
	err = p.members[0].exporter.Await(ctx, time.Second, func() (bool, error) {
		n, err := p.stream.Count(ctx)
		return n > p.objects, err
	})
	if err == nil {
		err = p.rig.Desk.Release(ctx, p.world)
	}
	if err == nil {
		err = p.stream.follow(ctx)
	}
	if err == nil {
		err = p.start(1)
	}
	if err != nil {
		return err
	}
	return p.settle(ctx)
}

// start starts a member, with the directory that it has.
func (p *pair) start(i int) (err error) {
	m := p.members[i]
	if m == nil {
		m = &member{}
		if m.Line, err = p.rig.NewLine(fmt.Sprint("member-", i)); err != nil {
			return err
		}
		m.Config = fmt.Sprintf(config, p.url, "TAKEOVER", "t", p.lease)
		p.members[i] = m
	}
	m.exporter, err = m.Start(p.world)
	return err
}

// end ends what runs.
func (p *pair) end() {
	for _, m := range p.members {
		if m != nil && m.exporter != nil {
			m.exporter.Kill()
		}
	}
}

// status is what matters here of /statusz.
type status struct {
	HA struct {
		Leads   bool
		Standby *struct {
			Whole      bool
			LagSeconds float64
		}
	}
	State struct {
		Log *struct{ LagSeconds float64 }
	}
}

// status is the member's, false while it does not answer.
func (m *member) status(ctx context.Context) (s status, ok bool) {
	return s, harness.ReadStatus(ctx, m.StateDir(), &s) == nil
}

// settle waits until the log has everything, and the standby has the log.
func (p *pair) settle(ctx context.Context) error {
	leader, standby := p.members[p.leads], p.members[1-p.leads]
	return standby.exporter.Await(ctx, 10*every, func() (bool, error) {
		one, ok := leader.status(ctx)
		other, ok2 := standby.status(ctx)
		return ok && ok2 && one.HA.Leads && one.State.Log != nil && one.State.Log.LagSeconds < 1 && other.HA.Standby != nil && other.HA.Standby.Whole && other.HA.Standby.LagSeconds < 1, nil
	})
}

// lags are how far the log is behind the state, sorted, while changes come.
func (p *pair) lags(ctx context.Context) (all []float64, err error) {
	until := time.Now().Add(p.quiet)
	err = p.members[p.leads].exporter.Await(ctx, 5*every, func() (bool, error) {
		if s, ok := p.members[p.leads].status(ctx); ok && s.State.Log != nil {
			all = append(all, s.State.Log.LagSeconds)
		}
		return time.Now().After(until), nil
	})
	slices.Sort(all)
	return all, err
}

// takeovers are how many seconds each takes, sorted: from how the leader ends until its successor's first change.
func (p *pair) takeovers(ctx context.Context, count int, how func(leader *harness.Exporter) error) (all []float64, err error) {
	for range count {
		began := time.Now()
		if err := how(p.members[p.leads].exporter); err != nil {
			return nil, err
		}
		p.stream.await(time.Now())
		p.leads = 1 - p.leads
		took, err := p.firstChange(ctx, began)
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
	slices.Sort(all)
	return all, nil
}

// firstChange waits for the leader's first change, and returns how long that took.
func (p *pair) firstChange(ctx context.Context, began time.Time) (took time.Duration, err error) {
	err = p.members[p.leads].exporter.Await(ctx, every, func() (bool, error) {
		at, came := p.stream.came()
		took = at.Sub(began)
		return came, nil
	})
	return took, err
}

// fromNothing is how long an exporter with an empty directory takes until its first change.
func (p *pair) fromNothing(ctx context.Context) (time.Duration, error) {
	p.members[1-p.leads].exporter.Kill()
	if _, err := p.members[p.leads].exporter.Stop(); err != nil {
		return 0, err
	}
	p.stream.await(time.Now())
	if err := os.RemoveAll(p.members[p.leads].StateDir()); err != nil {
		return 0, err
	}
	if err := p.start(p.leads); err != nil {
		return 0, err
	}
	return p.firstChange(ctx, p.members[p.leads].exporter.Began)
}
