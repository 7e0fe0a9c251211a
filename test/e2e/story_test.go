package e2e

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/test/kafka"
)

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
	r := newRig(t)
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

// outage takes the broker away until the log says so. When its sink is well again and has
// everything, the log must have told the story.
func (s *outageStory) outage() {
	s.t.Helper()
	told := len(s.exporter.log(s.t))
	s.leave()
	eventually(s.t, deliveryLimit, "the log says that the broker is away", func() bool {
		s.writer.disturb(s.t)
		return strings.Contains(s.exporter.log(s.t)[told:], "sink="+s.sink)
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

// expectChapter wants one outage: its begin, what lasts once a minute, the gaps, its end, and nothing else.
func (s *outageStory) expectChapter(lines []string, gaps []wireGap) {
	s.t.Helper()
	told, last, log := "", time.Time{}, strings.Join(lines, "\n")
	for _, line := range lines {
		kind, at := s.kindOf(line)
		if told != "" && !strings.Contains(told, "e") && at.Sub(last) > 75*time.Second {
			s.t.Errorf("nothing was said for %s: %s", at.Sub(last), line)
		}
		told, last = told+kind, at
	}
	if !regexp.MustCompile(`^bl*(e|h[lg]*eg*)$`).MatchString(told) {
		s.t.Errorf("the story is %q, want its begin, that it lasts, which streams are held up, and its end, with gaps of those:\n%s", told, log)
	}
	for _, gap := range unnamed(gaps, log) {
		s.t.Errorf("the log does not name the gap %+v", gap)
	}
	for _, named := range namedGaps(log) {
		if !slices.ContainsFunc(gaps, named.has) {
			s.t.Errorf("the log names the gap %+v, and no consumer was told of it", named)
		}
	}
}

// kindOf is a letter for what the line tells, and when. It wants all parts of such a line.
func (s *outageStory) kindOf(line string) (kind string, at time.Time) {
	s.t.Helper()
	text, _, _ := strings.Cut(strings.TrimPrefix(line, "time="), " ")
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		s.t.Error(err)
	}
	of := " sink=" + s.sink + " "
	for _, k := range []struct {
		kind, says string
		parts      []string
	}{
		{"l", lasts, []string{"level=WARN", of, "error=", "since=", "for=", "attempts=", "streamsHeldUp=", "waiting=", "waitingBytes="}},
		{"e", accepts, []string{"level=INFO", of, "for=", "attempts=", "waiting=", "waitingBytes="}},
		{"h", holds, []string{"level=WARN", " sinks=" + s.sink + " ", "streams=", "resource=", "historyLeft="}},
		{"g", gapTold, []string{"level=WARN"}},
		{"b", of, []string{"level=WARN", "error=", "waiting=", "waitingBytes="}},
	} {
		if !strings.Contains(line, k.says) {
			continue
		}
		if lacking := slices.DeleteFunc(k.parts, func(part string) bool { return strings.Contains(line, part) }); len(lacking) > 0 {
			s.t.Errorf("it lacks %q: %s", lacking, line)
		}
		return k.kind, at
	}
	return "?", at
}
