package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
	"github.com/kubecdc/kubecdc/bench/rig"
)

// rate is how many changes a second come, of objects of so many bytes.
const rate, objectBytes = 200, 8 << 10

// trouble is what the third of three sinks has, a stream as a rule. The others are a file and Kafka.
type trouble struct {
	name   string
	rest   string // of the sink's configuration
	small  bool   // the stream takes no message of that size, and the sink stops
	hangs  bool   // the server answers nobody from the release on
	speed  int    // so many bytes a second are taken; 0 is all
	schema bool   // the sink is Kafka, with a registry that nobody can reach
}

func troubles() []trouble {
	const spool = ", queue: {records: 500, full: spool}"
	return []trouble{
		{name: "none", rest: spool},
		{name: "stopped", rest: ", oversize: reject", small: true},
		{name: "hanging", rest: spool, hangs: true},
		{name: "slow", rest: spool, speed: 1 << 20},
		{name: "no_schema", rest: ", format: debezium", schema: true},
		{name: "full", rest: ", queue: {records: 100, full: block}", hangs: true},
	}
}

// third is the sink with the trouble, in the configuration, and what ends what it needs.
func (c *course) third(ctx context.Context, run string, t *trouble) (config string, end func(), err error) {
	if t.schema {
		const text = "{name: third, kafka: {brokers: [%q], topic: %s, registry: {url: 'http://127.0.0.1:9', subject: record}}%s}"
		return fmt.Sprintf(text, c.brokers[0], run+"-third", t.rest), func() {}, nil
	}
	url, end := c.server.URL, func() {}
	if t.speed > 0 {
		throttle, err := harness.NewThrottle(url, t.speed)
		if err != nil {
			return "", nil, err
		}
		url, end = throttle.URL(), throttle.Close
	}
	if t.small {
		if err := c.makeStream(ctx, run, 4<<10); err != nil {
			return "", nil, err
		}
	}
	return fmt.Sprintf("{name: third, nats: {url: %q, stream: %s, subject: '%s.{name}'}%s}", url, run, run, t.rest), end, nil
}

// makeStream makes a stream that takes no larger message.
func (c *course) makeStream(ctx context.Context, name string, most int32) error {
	nc, err := natsgo.Connect(c.server.URL)
	if err != nil {
		return fmt.Errorf("connect to nats-server: %w", err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err == nil {
		_, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: name, Subjects: []string{name + ".>"}, MaxMsgSize: most})
	}
	if err != nil {
		return fmt.Errorf("make stream %s: %w", name, err)
	}
	return nil
}

// others is how late a file and Kafka have their records with each trouble of the third sink, beside the same
// without.
func (c *course) others(ctx context.Context) (err error) {
	if c.brokers, err = c.rig.Kafka(ctx); err != nil {
		return err
	}
	p99 := map[string][]float64{} // by trouble and sink
	for round := range c.rounds {
		for _, t := range troubles() {
			late, err := c.beside(ctx, round, &t)
			if err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			for name, all := range late {
				slices.Sort(all)
				key := t.name + "." + name
				p99[key] = append(p99[key], harness.Percentile(all, 99))
			}
		}
	}
	for _, t := range troubles() {
		for _, name := range []string{"file", "kafka"} {
			of, without := p99[t.name+"."+name], p99["none."+name]
			c.note("others."+t.name+"_"+name+"_p99_ms", harness.Median(of), "ms")
			var ratios []float64
			for i := range of {
				ratios = append(ratios, of[i]/without[i])
			}
			if t.name != "none" {
				c.note("others."+t.name+"_"+name+"_p99_ratio", harness.Median(ratios), "ratio")
			}
		}
	}
	return nil
}

// beside is how late, in milliseconds, the file and Kafka have each change, by sink.
func (c *course) beside(ctx context.Context, round int, t *trouble) (late map[string][]float64, err error) {
	w := replay.World{Run: fmt.Sprintf("others-%s-%d", t.name, round), Events: rate * int(c.span.Seconds()), Rate: rate, ObjectBytes: objectBytes}
	third, end, err := c.third(ctx, w.Run, t)
	if err != nil {
		return nil, err
	}
	defer end()
	path := filepath.Join(c.rig.Dir, w.Run, "file.ndjson")
	l, err := c.start(ctx, w, sinks(c.file(w.Run), fmt.Sprintf("{name: kafka, kafka: {brokers: [%q], topic: %s}}", c.brokers[0], w.Run), third))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.end()) }()
	clocks := map[string]*clock{"file": {}, "kafka": {}}
	reading, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	defer done.Wait()
	defer stop()
	consumer, err := kgo.NewClient(kgo.SeedBrokers(c.brokers...), kgo.ConsumeTopics(w.Run), kgo.FetchMaxWait(50*time.Millisecond))
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	done.Go(func() {
		for reading.Err() == nil {
			consumer.PollFetches(reading).EachRecord(func(r *kgo.Record) { clocks["kafka"].note(r.Value) })
		}
	})
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("follow the file: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	done.Go(func() { clocks["file"].follow(reading, file) })
	if t.hangs {
		if err := c.server.Pause(); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, c.server.Resume()) }()
	}
	began, err := l.release(ctx)
	if err != nil {
		return nil, err
	}
	for name := range clocks {
		if err := l.exporter.Await(ctx, rig.Poll, func() (bool, error) { return clocks[name].count() >= w.Events, nil }); err != nil {
			return nil, fmt.Errorf("%d of %d changes in %s: %w", clocks[name].count(), w.Events, name, err)
		}
	}
	late = map[string][]float64{}
	for name, clock := range clocks {
		late[name] = clock.late(began)
	}
	return late, nil
}

// clock is when each change came. The changes of a world have versions one above the other.
type clock struct {
	mu    sync.Mutex
	first int
	at    map[int]time.Time
}

// note takes an event of CloudEvents.
func (c *clock) note(event []byte) {
	now := time.Now()
	_, rest, found := bytes.Cut(event, []byte(`"resourceversion":"`))
	number, _, _ := bytes.Cut(rest, []byte(`"`))
	version, err := strconv.Atoi(string(number))
	if !found || err != nil || !bytes.Contains(event, []byte(`.updated"`)) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == nil {
		c.at = map[int]time.Time{}
	}
	if c.first == 0 || version < c.first {
		c.first = version
	}
	if _, is := c.at[version]; !is {
		c.at[version] = now
	}
}

// follow takes the lines of a file that grows, until ctx ends.
func (c *clock) follow(ctx context.Context, file *os.File) {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	lines, part := bufio.NewReaderSize(file, 1<<20), []byte(nil)
	for ctx.Err() == nil {
		text, err := lines.ReadBytes('\n')
		if part = append(part, text...); err == nil {
			c.note(part)
			part = part[:0]
			continue
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

func (c *clock) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.at)
}

// late is how long after its turn each change came, in milliseconds.
func (c *clock) late(began time.Time) (all []float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for version, at := range c.at {
		due := began.Add(time.Duration(version-c.first) * time.Second / rate)
		all = append(all, float64(at.Sub(due))/float64(time.Millisecond))
	}
	return all
}
