package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/test/child"
)

// program is one of the two, with its state and its topic.
type program struct {
	name, part string
	told       *told
	binary     string
	args, env  []string
	log        string // its file
	running    *child.Process
}

func (p *program) start() (err error) {
	cmd := exec.Command(p.binary, p.args...)
	cmd.Env = append(os.Environ(), p.env...)
	if p.running, err = child.StartLogged(cmd, p.log); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	return nil
}

// ended is an error where the program does not run.
func (p *program) ended() error {
	if p.running.Running() {
		return nil
	}
	text, _ := os.ReadFile(p.log) // the end is the news
	return fmt.Errorf("%s ended: %w: %s", p.name, p.running.Ended(), text[max(0, len(text)-2000):])
}

// pair is both programs.
type pair struct{ programs []*program }

// open starts both, each with a new state and a new topic.
func (c *course) open(ctx context.Context, part string) (_ *pair, err error) {
	both := &pair{}
	defer func() {
		if err != nil {
			both.close()
		}
	}()
	for _, p := range []*program{
		{name: "kubecdc", binary: c.binary, args: []string{"run", "--kubeconfig", c.in.Kubeconfig(), "--config"}},
		{name: "collector", binary: c.other, env: []string{"KUBECONFIG=" + c.in.Kubeconfig()}, args: []string{"--config"}},
	} {
		p.part = part
		dir := filepath.Join(c.in.Dir, part, p.name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make a directory: %w", err)
		}
		p.log = filepath.Join(dir, "log")
		config, topic := filepath.Join(dir, "config.yaml"), part+"-"+p.name
		text := strings.NewReplacer("DIR", dir, "TOPIC", topic, "BROKER", c.broker.Brokers()[0]).Replace(configs()[p.name])
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			return nil, fmt.Errorf("write the configuration: %w", err)
		}
		p.args = append(p.args, config)
		if p.told, err = follow(ctx, c.broker.Brokers(), topic); err != nil {
			return nil, err
		}
		both.programs = append(both.programs, p)
	}
	return both, both.start()
}

// configs are the best of each for the task: whole records, zstd, all replicas, and a queue on disk.
func configs() map[string]string {
	return map[string]string{"kubecdc": `
cluster: bench
resources: [pods]
sinks: [{name: kafka, kafka: {brokers: [BROKER], topic: TOPIC, compression: zstd}, queue: {full: spool}}]
state: {dir: DIR/state}
listen: 127.0.0.1:0
`, "collector": `
extensions: {file_storage: {directory: DIR/state, create_directory: true}}
receivers:
  k8sobjects: {auth_type: kubeConfig, include_initial_state: true, objects: [{name: pods, mode: watch}]}
exporters:
  kafka:
    brokers: [BROKER]
    logs: {topic: TOPIC, encoding: raw}
    producer: {required_acks: -1, compression: zstd}
    retry_on_failure: {initial_interval: 1s, max_interval: 5s, max_elapsed_time: 0}
    sending_queue:
      storage: file_storage
      num_consumers: 1 # with more, the changes of an object change places
      sizer: items
      queue_size: 1000000
      block_on_overflow: true
      batch: {sizer: items, flush_timeout: 200ms, min_size: 500, max_size: 1000}
service:
  extensions: [file_storage]
  telemetry: {metrics: {level: none}, logs: {level: warn}}
  pipelines: {logs: {receivers: [k8sobjects], exporters: [kafka]}}
`}
}

func (b *pair) start() error {
	for _, p := range b.programs {
		if err := p.start(); err != nil {
			return err
		}
	}
	return nil
}

func (b *pair) kill() {
	for _, p := range b.programs {
		p.running.Kill()
	}
}

func (b *pair) close() {
	for _, p := range b.programs {
		if p.running != nil {
			p.running.Kill()
		}
		p.told.close()
	}
}

// await returns when both have told so many changes.
func (b *pair) await(ctx context.Context, changes int) error {
	return b.until(ctx, func(told int, _ time.Time) bool { return told >= changes })
}

// settle returns when neither has told anything for a while.
func (b *pair) settle(ctx context.Context) error {
	return b.until(ctx, func(_ int, last time.Time) bool { return time.Since(last) > calm })
}

func (b *pair) until(ctx context.Context, reached func(told int, last time.Time) bool) error {
	for {
		ready := true
		for _, p := range b.programs {
			told, last, err := p.told.changes()
			if err := errors.Join(err, p.ended()); err != nil {
				return err
			}
			ready = ready && reached(told, last)
		}
		if ready {
			return nil
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// spent is what a program has used, and the size of its topic.
type spent struct {
	harness.Usage
	bytes int64
}

func (b *pair) spent(ctx context.Context) (all []spent, err error) {
	for _, p := range b.programs {
		var s spent
		if s.Usage, err = harness.UsageOf(p.running.Cmd.Process.Pid); err != nil {
			return nil, err
		}
		if s.bytes, err = p.told.size(ctx); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}
