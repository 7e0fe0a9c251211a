package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// stage is where a story plays: one process, of which only what happens and when is known.
type stage struct {
	*Telemetry
	log   *bytes.Buffer
	gaps  map[string]*change.Snapshot // by their resources
	count int                         // of what says its number
	leads Leadership
}

// later lets so many seconds pass, in which the log is looked after as in a process.
func (s *stage) later(seconds int) {
	for range seconds {
		time.Sleep(time.Second)
		s.Check()
	}
}

// starts makes the streams those of a process that has just begun.
func (s *stage) starts() {
	s.states.started = false
	for _, stream := range s.Streams {
		s.states.streams[stream.String()] = s.newStream(stream, false)
	}
}

func (s *stage) saved() { s.Committed(0) }

func (s *stage) unsaved() {
	s.CommitFailed(fmt.Errorf("only %d MiB free", s.count))
	s.count++
}

// knowsBoth has two streams of which nothing waits, and letGo none.
func (s *stage) knowsBoth() { s.Follow(standing(map[string]time.Time{"pods": {}, "nodes": {}})) }
func (s *stage) letGo()     { s.Follow(standing(nil)) }

// heldUp has one stream wait for the sink since the story began.
func (s *stage) heldUp() {
	began := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	s.Follow(standing(map[string]time.Time{"pods": began}))
	s.Queued("bus", fifo.Levels{Records: 9, Oldest: began})
}

func (s *stage) elects() { s.Retried("bus", "not_leader", errors.New("the leader has changed")) }

// step is one thing that happens in a story.
type step func(s *stage)

func later(seconds int) step { return func(s *stage) { s.later(seconds) } }
func retried() step {
	return func(s *stage) { s.Retried("bus", "unreachable", errors.New("nobody listens")) }
}
func written() step         { return func(s *stage) { s.Written("bus", records(1), time.Millisecond) } }
func opened() step          { return func(s *stage) { s.Opened("bus", 0) } }
func stops(why string) step { return func(s *stage) { s.Stopped("bus", errors.New(why)) } }
func fenced() step {
	return func(s *stage) {
		s.Stopped("bus", &sink.PermanentError{Err: errors.New("another exporter writes"), Fenced: true})
	}
}
func left(resource string) step { return func(s *stage) { s.StreamOver(streamOf(resource)) } }
func again(resource string) step {
	return func(s *stage) { s.Comparing(streamOf(resource), s.gaps[resource]) }
}
func watched(resource, version string) step {
	return func(s *stage) { s.Watching(streamOf(resource), version) }
}
func failed(resource, why string) step {
	return func(s *stage) { s.StreamFailed(streamOf(resource), Failed, errors.New(why)) }
}
func listed(resource string, n int, more int64) step {
	return func(s *stage) { s.Listed(streamOf(resource), n, more) }
}
func unserved(resource string) step {
	return func(s *stage) { s.Waiting(streamOf(resource), "the API server does not serve "+resource) }
}

// queued are so many records that wait for the sink, since now.
func queued(n int) step {
	return func(s *stage) {
		if n == 0 {
			s.Queued("bus", fifo.Levels{})
			return
		}
		s.Queued("bus", fifo.Levels{Records: n, Oldest: time.Now()})
	}
}

func cutOff(resource string, how Failure, why string) step {
	return func(s *stage) { s.StreamFailed(streamOf(resource), how, errors.New(why)) }
}

// expires says that the history is gone, of a later version each time.
func expires(resource string, version int) step {
	return func(s *stage) {
		n := version + s.count
		s.StreamFailed(streamOf(resource), Expired, fmt.Errorf("too old resource version: %d (%d)", n, n+100))
		s.count++
	}
}

// gap is what the source tells of a gap of the resource, up to its begin.
func gap(resource string, reason change.Reason, from, to string, sinks ...string) step {
	return func(s *stage) {
		since := time.Now().Add(-time.Second).UTC()
		s.gaps[resource] = &change.Snapshot{Reason: reason, From: from, ResourceVersion: to, Sinks: sinks, Since: since, Epoch: "epoch-2"}
		again(resource)(s)
	}
}

// mended is the rest.
func mended(resource string) step {
	return func(s *stage) {
		listed(resource, 40, 0)(s)
		reconciled(resource, change.Counts{Replaced: 5, Deleted: 3})(s)
	}
}

func reconciled(resource string, counts change.Counts) step {
	return func(s *stage) {
		s.gaps[resource].Counts = counts
		s.Compared(streamOf(resource), s.gaps[resource])
	}
}

func times(n int, steps ...step) step {
	return func(s *stage) {
		for range n {
			for _, do := range steps {
				do(s)
			}
		}
	}
}

// away lets the sink fail for so long, each second, at one of its brokers after the other.
func away(seconds int) step {
	return func(s *stage) {
		for i := range seconds {
			s.Queued("bus", fifo.Levels{Records: 10 * i, Bytes: 1000 * i, Oldest: time.Now().Add(-time.Duration(i) * time.Second)})
			s.Retried("bus", "unreachable", fmt.Errorf("broker %d does not answer", i%3))
			s.later(1)
		}
	}
}

// holdsUp is such an outage, in which two quiet streams wait for the sink, and then none for so many seconds, up to the
// first batch after it.
func holdsUp(none int) step {
	return func(s *stage) {
		began := time.Now()
		s.Follow(standing(map[string]time.Time{"pods": began, "nodes": began}))
		times(1, away(200), (*stage).letGo, away(none), written())(s)
	}
}

func (s *stage) misshapen(rec *change.Record) { s.ShapeFailed(rec, errors.New("no such key: x")) }

func hears(err error) step { return func(s *stage) { s.Hears("bus", err) } }
func sinkFailed(why string) step {
	return func(s *stage) { s.SinkFailed("bus", errors.New(why)) }
}
func standsBy(is Standby) step { return func(s *stage) { s.leads.Standby = &is } }
func ready() step {
	return times(1, asked("/readyz"), asked("/readyz?verbose"), shown(func(s Status) any { return s.Ready }))
}

// election is an answer that a broker at work gives.
type election struct{}

func (election) Error() string { return "the leader has changed" }
func (election) Routine() bool { return true }

func routine(name string) step {
	return func(s *stage) { s.Retried(name, "coordinator_not_available", fmt.Errorf("open: %w", election{})) }
}

// paced are so many changes a second, of the two minutes that end so many seconds ago.
func paced(resource string, perSecond, ago int) step {
	return func(s *stage) {
		stream, until := streamOf(resource), time.Now().Add(-time.Duration(ago)*time.Second)
		for i := range 120 * perSecond {
			at := until.Add(time.Duration(i)*time.Second/time.Duration(perSecond) - 2*time.Minute)
			s.Received(&change.Record{Stream: &stream, Op: change.Updated, Received: at})
		}
	}
}

// holds has the sink's oldest record, of pods, be so many seconds old, and the log be told.
func holds(age int) step {
	return func(s *stage) {
		oldest := time.Now().Add(-time.Duration(age) * time.Second)
		s.Queued("bus", fifo.Levels{Records: 1, Oldest: oldest})
		s.Follow(standing(map[string]time.Time{"pods": oldest}))
		s.Check()
	}
}

func (s *stage) frees() {
	s.Queued("bus", fifo.Levels{})
	s.knowsBoth()
	s.Check()
}

func sleeps(seconds int) step {
	return func(*stage) { time.Sleep(time.Duration(seconds) * time.Second) }
}

func shownHistory() step {
	return shown(func(s Status) any {
		of := s.Streams["pods"]
		return fmt.Sprintf("%.0f of %.0f s, held by %q", of.HistoryLeftSeconds, of.HistorySeconds, of.HeldBy)
	})
}

// counted is how many objects the sink has.
func counted(n int) step {
	return func(s *stage) { s.states.streams["pods"].counts["bus"] = objectCount{n: n, counted: time.Now()} }
}

func shownSnapshot() step { return shown(func(s Status) any { return s.Streams["pods"].Snapshot }) }

// asked writes what the path answers, of several lines those with one of the parts.
func asked(path string, parts ...string) step {
	return func(s *stage) {
		code, body := get(s.Telemetry, path)
		fmt.Fprintf(s.log, "GET %s: %d\n", path, code)
		for line := range strings.Lines(body) {
			if len(parts) == 0 || slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(line, part) }) {
				s.log.WriteString("    " + line)
			}
		}
	}
}

// shown writes what /statusz has of it.
func shown(of func(Status) any) step {
	return func(s *stage) {
		text, err := json.Marshal(of(s.Status()))
		if err != nil {
			text = []byte(err.Error())
		}
		fmt.Fprintf(s.log, "%s\n", text)
	}
}

func shownSink(name string) step { return shown(func(s Status) any { return s.Sinks[name] }) }
func shownStream() step          { return shown(func(s Status) any { return s.Streams["pods"] }) }
func shownState() step           { return shown(func(s Status) any { return s.Streams["pods"].State }) }

// many lets a thousand happen, with a pause between two.
func many(pause time.Duration, one func(s *stage, rec *change.Record)) step {
	return func(s *stage) {
		for i := range 1000 {
			one(s, named(fmt.Sprint("web-", i)))
			time.Sleep(pause)
		}
		s.later(300)
	}
}

// named is a record of an object of that name, as a dead letter is sent again.
func named(name string) *change.Record {
	stream := pods()
	return &change.Record{
		Stream: &stream, Op: change.Updated, Key: change.Key{Namespace: "n", Name: name}, UID: "u", ResourceVersion: "7", Received: time.Now(),
		Remarks: &change.Remarks{Trimmed: ".data"}, Replay: &change.Replay{Letter: "abc"},
	}
}

// play returns what is told: lines of the log, with time, level, text and attributes, and what the script asks for.
func play(script []step) string {
	log := new(bytes.Buffer)
	s := &stage{Telemetry: newTelemetry(io.Discard), log: log, gaps: map[string]*change.Snapshot{}}
	s.Leadership = func() Leadership { return s.leads }
	s.Opened("bus", 0)
	for _, stream := range s.Streams {
		s.Watching(stream, "100")
	}
	s.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			a.Value = slog.StringValue(a.Value.Time().UTC().Format(time.TimeOnly))
		}
		return a
	}}))
	times(1, script...)(s)
	plain := regexp.MustCompile(`(?m)^time=(\S+) level=(\S+) msg=("?)(.*?)("?)( \w+=|$)`)
	return plain.ReplaceAllString(log.String(), "$1 $2 $4$6")
}
