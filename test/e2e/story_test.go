package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// outageTime is how long the broker is away: E2E_OUTAGE, or until the log has said so.
func outageTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("E2E_OUTAGE")
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("E2E_OUTAGE %q: %v", text, err)
	}
	return d
}

// TestI1AnOutageIsAStoryOfAFewLines: a broker is away twice, while objects change. Of each time the log has one line
// when it begins, one a minute, one of its end, and one of the gap, where it lasted for so long.
func TestI1AnOutageIsAStoryOfAFewLines(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a Kafka broker")
	}
	kafka.RequireReal(t)
	t.Parallel()
	c := kafka.Start(t, kafka.Options{})
	r := newKafkaRig(t, c, kafkaSink{name: "lake", prefix: "story.", delivery: "idempotent", more: ", partitions: 1, replication: 1"})
	story := &outageStory{rig: r, sink: "lake"}
	story.leave = func() {
		if err := c.Kill(c.NodeIDs()[0]); err != nil {
			t.Fatal(err)
		}
	}
	story.comeBack = func() {
		ctx, cancel := context.WithTimeout(t.Context(), scenarioLimit)
		defer cancel()
		if err := c.StartNodes(ctx); err != nil {
			t.Fatal(err)
		}
	}
	story.play()
}

// TestI1AnOutageOfJetStreamIsAStoryOfAFewLines: the same of a NATS server.
func TestI1AnOutageOfJetStreamIsAStoryOfAFewLines(t *testing.T) {
	if testing.Short() {
		t.Skip("an outage is told of after some seconds")
	}
	r := newRig(t, nil)
	(&outageStory{rig: r, sink: "nats", leave: r.broker.kill, comeBack: r.broker.start}).play()
}

// outageStory is what happens to a sink whose broker is away twice, and what the log says of it.
type outageStory struct {
	*rig
	sink            string
	leave, comeBack func() // what the broker does
	gaps            []wireGap
}

// play lets it happen, and judges the log by what the sinks were told.
func (s *outageStory) play() {
	s.t.Helper()
	s.summon()
	s.writer.populate(s.t)
	s.exporter.start(s.t)
	s.await(s.writer.finish(s.t)...)
	s.idle()
	s.begun()
	told := len(s.exporter.log(s.t))
	for range 2 {
		s.outage()
	}
	lines := strings.Split(strings.TrimSpace(s.exporter.log(s.t)[told:]), "\n")
	s.t.Logf("the log says:\n%s", strings.Join(lines, "\n"))
	if len(lines) > 12 {
		s.t.Errorf("the log has %d lines of two outages, want 12 at most", len(lines))
	}
	s.stopIdle()
	s.judge(len(s.gaps) > 0)
}

// begun returns when the log has the lines of the start.
func (r *rig) begun() {
	r.t.Helper()
	eventually(r.t, deliveryLimit, "the log says that the streams are watched, and what the first comparison found", func() bool {
		log := r.exporter.log(r.t)
		return strings.Contains(log, "msg=watching ") && strings.Contains(log, "msg=\"snapshot complete\" ")
	})
}

// outage takes the broker away for its time, and at least until the log says so. When its sink is well again and has
// everything, the log must have told the story.
func (s *outageStory) outage() {
	s.t.Helper()
	began, told := time.Now(), len(s.exporter.log(s.t))
	s.leave()
	eventually(s.t, outageTime(s.t)+deliveryLimit, "the log says that the broker is away, and its time is over", func() bool {
		s.writer.disturb(s.t)
		return time.Since(began) >= outageTime(s.t) && strings.Contains(s.exporter.log(s.t)[told:], "sink="+s.sink)
	})
	last := s.writer.finish(s.t)
	s.comeBack()
	s.await(last...)
	s.idle()
	known := len(s.gaps)
	s.gaps = s.wireGaps()
	eventually(s.t, deliveryLimit, "the log says that it is back, and names all gaps", func() bool {
		log := s.exporter.log(s.t)[told:]
		return strings.Contains(log, accepts) && len(unnamed(s.gaps[known:], log)) == 0
	})
	s.expectChapter(strings.Split(strings.TrimSpace(s.exporter.log(s.t)[told:]), "\n"), s.gaps[known:])
}

// wireGap is a gap as the file's consumer was told of it.
type wireGap struct{ stream, reason, from, to string }

// wireGaps are all gaps in the file.
func (s *outageStory) wireGaps() (gaps []wireGap) {
	s.t.Helper()
	for _, e := range s.file.all(s.t) {
		if e.op() != "gap" {
			continue
		}
		f, err := e.frame()
		if err != nil {
			s.t.Fatal(err)
		}
		gaps = append(gaps, wireGap{e.kind(), f.Reason, f.LastDelivered, f.ResourceVersion})
	}
	return gaps
}

// unnamed are the gaps that the log does not name. One line may name several, and one gap may be told as one with the
// next.
func unnamed(gaps []wireGap, log string) []wireGap {
	var missing []wireGap
	for _, gap := range gaps {
		if !slices.ContainsFunc(namedGaps(log), func(named wireGap) bool { return named.has(gap) }) {
			missing = append(missing, gap)
		}
	}
	return missing
}

// has says whether the gap holds all that the other does.
func (g wireGap) has(other wireGap) bool {
	return g.stream == other.stream && g.reason == other.reason && parseVersion(g.from) <= parseVersion(other.from) && parseVersion(other.to) <= parseVersion(g.to)
}

// namedGaps are those of the log, each with how its reconcile ended.
func namedGaps(log string) (gaps []wireGap) {
	one := regexp.MustCompile(`resource=(\S+) reason=(\w+) lastDelivered=(\d+) resourceVersion=(\d+) .*objects=\d+ replaced=\d+ deleted=\d+ for=`)
	oneOf := regexp.MustCompile(`(?:\[| )(\S+)\((\w+) (\d+)-(\d+): \d+ replaced, \d+ deleted\)`)
	for line := range strings.Lines(log) {
		if !strings.Contains(line, gapTold) {
			continue
		}
		for _, found := range append(one.FindAllStringSubmatch(line, -1), oneOf.FindAllStringSubmatch(line, -1)...) {
			gaps = append(gaps, wireGap{found[1], found[2], found[3], found[4]})
		}
	}
	return gaps
}

// What the log says of a sink that fails and of one that is well again, and of what is lost.
const (
	lasts   = `msg="sink still fails"`
	holds   = `msg="sinks hold streams up; `
	accepts = `msg="sink accepts records again"`
	gapTold = `msg="gap: intermediate changes may be missing"`
)

// chapter is what the lines of one outage have told so far.
type chapter struct {
	began, held, ended bool
	last               time.Time // the line before
}

// expectChapter wants one outage: its begin, what lasts once a minute, the gaps, its end, and nothing else.
func (s *outageStory) expectChapter(lines []string, gaps []wireGap) {
	s.t.Helper()
	var c chapter
	for _, line := range lines {
		if err := c.take(line, s.sink); err != nil {
			s.t.Errorf("%v: %s", err, line)
		}
	}
	if !c.ended {
		s.t.Error("the log does not say that the broker is back")
	}
	for _, gap := range unnamed(gaps, strings.Join(lines, "\n")) {
		s.t.Errorf("the log does not name the gap %+v", gap)
	}
	for _, named := range namedGaps(strings.Join(lines, "\n")) {
		if !slices.ContainsFunc(gaps, named.has) {
			s.t.Errorf("the log names the gap %+v, and no consumer was told of it", named)
		}
	}
}

// take reads the next line, and returns what is wrong with it.
func (c *chapter) take(line, sink string) error {
	text, _, _ := strings.Cut(strings.TrimPrefix(line, "time="), " ")
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return err
	}
	if c.began && !c.ended && at.Sub(c.last) > 75*time.Second {
		return fmt.Errorf("nothing was said for %s", at.Sub(c.last))
	}
	c.last = at
	if !strings.Contains(line, " sink="+sink+" ") {
		return c.takeOther(line, sink)
	}
	switch known := c.began && !c.ended; {
	case strings.Contains(line, lasts) && known:
		return lacks(line, "level=WARN", "error=", "since=", "for=", "attempts=", "streamsHeldUp=", "waiting=", "waitingBytes=")
	case strings.Contains(line, accepts) && known:
		c.ended = true
		return lacks(line, "level=INFO", "for=", "attempts=", "waiting=", "waitingBytes=")
	case strings.Contains(line, "level=WARN") && !c.began:
		c.began = true
		return lacks(line, "error=", "waiting=", "waitingBytes=")
	}
	return errors.New("nobody needs this line here")
}

// takeOther reads a line about streams: that they are held up, and then, what they lost.
func (c *chapter) takeOther(line, sink string) error {
	switch {
	case strings.Contains(line, holds) && strings.Contains(line, " sinks="+sink+" ") && c.began && !c.ended && !c.held:
		c.held = true
		return lacks(line, "level=WARN", "streams=", "resource=", "historyLeft=")
	case strings.Contains(line, gapTold) && c.held:
		return lacks(line, "level=WARN")
	}
	return errors.New("nobody needs this line here")
}

func lacks(line string, parts ...string) error {
	missing := slices.DeleteFunc(parts, func(part string) bool { return strings.Contains(line, part) })
	if len(missing) > 0 {
		return fmt.Errorf("it lacks %q", missing)
	}
	return nil
}
