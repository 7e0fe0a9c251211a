package telemetry

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// stage is where a story plays: one process, of which only what happens and when is known.
type stage struct {
	*Telemetry
	gaps  map[string]*change.Snapshot // by their resources
	count int                         // of what says its number
}

func newStage(t *Telemetry) *stage { return &stage{Telemetry: t, gaps: map[string]*change.Snapshot{}} }

// later lets so many seconds pass, in which the log is looked after as in a process.
func (s *stage) later(seconds int) {
	for range seconds {
		time.Sleep(time.Second)
		s.CheckHistory()
		s.CheckGaps()
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

// fallsBehind has records come faster than the sink takes them.
func (s *stage) fallsBehind() {
	s.Spools = map[string]int64{"bus": 1000}
	began := time.Now()
	for i := range 300 {
		s.Queued("bus", fifo.Levels{Records: 3, Bytes: 30, SpoolRecords: int64(i), SpoolBytes: int64(2 * i), Oldest: began})
		times(1, written(), later(1))(s)
	}
}

func (s *stage) queuedOld() {
	s.Queued("bus", fifo.Levels{Records: 1, Oldest: time.Now().Add(-time.Hour)})
}
func (s *stage) elects() { s.Retried("bus", "not_leader", errors.New("the leader has changed")) }

func spooled(records, bytes int64) step {
	return func(s *stage) { s.Queued("bus", fifo.Levels{SpoolRecords: records, SpoolBytes: bytes}) }
}

func streamOf(resource string) change.Stream {
	return change.Stream{Resource: change.Resource{Version: "v1", Name: resource}}
}

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
func left(resource string) step { return func(s *stage) { s.Left(streamOf(resource)) } }
func again(resource string) step {
	return func(s *stage) { s.Comparing(streamOf(resource), s.gaps[resource]) }
}
func abandoned(resource string) step {
	return func(s *stage) { s.Abandoned(streamOf(resource), s.gaps[resource]) }
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
		s.gaps[resource] = &change.Snapshot{Reason: reason, From: from, ResourceVersion: to, Sinks: sinks, Since: since}
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

// begunStory is what the log says of it until then.
const begunStory = `
00:00:05 WARN sink retries sink=bus reason=unreachable error="broker 2 does not answer" waiting=50 waitingBytes=5000 spoolBytes=0 since=2000-01-01T00:00:00Z
00:01:05 WARN sink still fails sink=bus reason=unreachable error="broker 2 does not answer" since=2000-01-01T00:00:00Z for=1m5s attempts=66 streamsHeldUp=0 waiting=650 waitingBytes=65000 spoolBytes=0
00:02:05 WARN sink still fails sink=bus reason=unreachable error="broker 2 does not answer" since=2000-01-01T00:00:00Z for=2m5s attempts=126 streamsHeldUp=0 waiting=1250 waitingBytes=125000 spoolBytes=0
00:02:31 WARN sinks hold streams up; the API server will have forgotten what changes meanwhile: bring them back, or give them queue.full: spool sinks=bus streams=2 resource=nodes historyLeft=2m29s`

// TestI4WhatHappensIsAStory: of each thing that may happen, alone and with others, the log says what, when, and what
// was lost, in few lines.
func TestI4WhatHappensIsAStory(t *testing.T) {
	for _, c := range []struct {
		what   string
		script []step
		want   string
	}{
		{"a stream fails and recovers", []step{
			failed("pods", "connection refused"), failed("pods", "connection refused"), later(90), watched("pods", "120"),
			later(60),
		}, `
00:00:00 WARN stream failed; retrying resource=pods error="connection refused"
00:01:30 INFO stream recovered resource=pods resourceVersion=120 for=1m30s`},

		{"a stream is forbidden for as long as we look", []step{failed("pods", "pods is forbidden"), later(600)}, `
00:00:00 WARN stream failed; retrying resource=pods error="pods is forbidden"`},

		{"the credentials are revoked, and taken again", []step{
			(*stage).knowsBoth, cutOff("pods", Refused, "Unauthorized"), later(10),
			times(14, cutOff("nodes", Refused, "Unauthorized"), later(10)), watched("nodes", "120"), watched("pods", "120"),
			later(200),
		}, `
00:00:00 WARN the API server refuses the credentials; retrying: renew the exporter's token or certificate resource=pods error=Unauthorized
00:01:00 WARN streams still fail streams=2 resource=pods error=Unauthorized since=2000-01-01T00:00:00Z for=1m0s historyLeft=4m0s
00:02:00 WARN streams still fail streams=2 resource=pods error=Unauthorized since=2000-01-01T00:00:00Z for=2m0s historyLeft=3m0s
00:02:30 INFO the API server takes the credentials again for=2m30s`},

		{"the API server is away, and back", []step{
			cutOff("pods", Unreachable, "nobody answers in time"), cutOff("nodes", Unreachable, "nobody answers in time"),
			later(10), cutOff("pods", Unreachable, "connection refused"), cutOff("nodes", Unreachable, "connection refused"),
			later(10), watched("nodes", "120"), watched("pods", "120"), later(200),
		}, `
00:00:00 WARN the API server does not answer; retrying resource=pods error="nobody answers in time"
00:00:20 INFO the API server answers again for=20s`},

		{"the credentials are revoked, and those that are taken then may do less, or come too late", []step{
			(*stage).knowsBoth, failed("nodes", "connection refused"), later(10), cutOff("pods", Refused, "Unauthorized"),
			cutOff("nodes", Refused, "Unauthorized"), later(30), failed("nodes", "nodes is forbidden"), expires("pods", 100),
			gap("pods", change.Gone, "100", "300"), watched("pods", "300"), mended("pods"), watched("nodes", "120"), later(10),
		}, `
00:00:00 WARN stream failed; retrying resource=nodes error="connection refused"
00:00:10 WARN the API server refuses the credentials; retrying: renew the exporter's token or certificate resource=pods error=Unauthorized
00:00:40 WARN stream failed; retrying resource=nodes error="nodes is forbidden"
00:00:40 INFO the API server takes the credentials again for=30s
00:00:40 INFO stream recovered resource=nodes resourceVersion=120 for=40s
00:00:45 WARN gap: intermediate changes may be missing resource=pods reason=gone lastDelivered=100 resourceVersion=300 since=2000-01-01T00:00:39.000Z error="too old resource version: 100 (200)" objects=40 replaced=5 deleted=3 for=0s`},

		{"the state cannot be (*stage).saved, and is saved again", []step{times(90, (*stage).unsaved, later(1)), (*stage).saved, (*stage).saved, later(60)}, `
00:00:00 ERROR state not saved; retrying error="only 0 MiB free"
00:01:30 INFO state saved again for=1m30s attempts=90 since=2000-01-01T00:00:00Z`},

		{"a gap, and no sink fails", []step{
			expires("pods", 100), gap("pods", change.Gone, "100", "300"), watched("pods", "300"), mended("pods"), later(60),
		}, `
00:00:05 WARN gap: intermediate changes may be missing resource=pods reason=gone lastDelivered=100 resourceVersion=300 since=1999-12-31T23:59:59.000Z error="too old resource version: 100 (200)" objects=40 replaced=5 deleted=3 for=0s`},

		{"a gap without a failure", []step{gap("pods", change.Stale, "100", "300"), watched("pods", "300"), later(3), mended("pods"), later(60)}, `
00:00:08 WARN gap: intermediate changes may be missing resource=pods reason=stale lastDelivered=100 resourceVersion=300 since=1999-12-31T23:59:59.000Z objects=40 replaced=5 deleted=3 for=3s`},

		{"a gap that takes long to compare", []step{
			expires("pods", 100), gap("pods", change.Gone, "100", "300"), watched("pods", "300"), listed("pods", 500, 1500),
			later(150), mended("pods"), later(60),
		}, `
00:00:15 WARN gap: intermediate changes may be missing resource=pods reason=gone lastDelivered=100 resourceVersion=300 since=1999-12-31T23:59:59.000Z error="too old resource version: 100 (200)"
00:01:15 INFO gap is still being compared gaps=1 resource=pods reason=gone for=1m15s objects=500 percent=25
00:02:15 INFO gap is still being compared gaps=1 resource=pods reason=gone for=2m15s objects=500 percent=25
00:02:30 INFO snapshot complete resource=pods reason=gone resourceVersion=300 objects=540 replaced=5 deleted=3 for=2m30s`},

		{"a stream is down, and its history is gone when it is up", []step{
			failed("pods", "connection refused"), later(400), expires("pods", 100), gap("pods", change.Gone, "100", "300"),
			watched("pods", "300"), mended("pods"), later(60),
		}, `
00:00:00 WARN stream failed; retrying resource=pods error="connection refused"
00:06:40 INFO stream recovered resource=pods resourceVersion=300 for=6m40s
00:06:45 WARN gap: intermediate changes may be missing resource=pods reason=gone lastDelivered=100 resourceVersion=300 since=2000-01-01T00:06:39.000Z error="too old resource version: 100 (200)" objects=40 replaced=5 deleted=3 for=0s`},

		{"the history is gone, and the gap waits for the line", []step{
			expires("pods", 100), later(40), gap("pods", change.Gone, "100", "300"), watched("pods", "300"), mended("pods"),
			later(60),
		}, `
00:00:15 WARN stream failed; retrying resource=pods error="too old resource version: 100 (200)"
00:00:40 INFO stream recovered resource=pods resourceVersion=300 for=25s
00:00:45 WARN gap: intermediate changes may be missing resource=pods reason=gone lastDelivered=100 resourceVersion=300 since=2000-01-01T00:00:39.000Z objects=40 replaced=5 deleted=3 for=0s`},

		{"the history is said to be gone again and again", []step{times(80, expires("pods", 0), later(1))}, `
00:00:15 WARN stream failed; retrying resource=pods error="too old resource version: 0 (100)"
00:01:15 WARN stream failed; retrying resource=pods error="too old resource version: 15 (115)"`},

		{"the history is said to be gone, and no gap follows", []step{expires("pods", 100), later(1), watched("pods", "300"), later(60)}, `
00:00:01 WARN stream failed, and recovered without a gap resource=pods resourceVersion=300 error="too old resource version: 100 (200)"`},

		{"the comparison behind a gap fails for a while", []step{
			expires("pods", 100), gap("pods", change.Gone, "100", "300"), watched("pods", "300"),
			failed("pods", "read a snapshot of pods: forbidden"), later(30), watched("pods", "300"), mended("pods"), later(60),
		}, `
00:00:00 WARN stream failed; retrying resource=pods error="read a snapshot of pods: forbidden"
00:00:15 WARN gap: intermediate changes may be missing resource=pods reason=gone lastDelivered=100 resourceVersion=300 since=1999-12-31T23:59:59.000Z error="too old resource version: 100 (200)"
00:00:30 INFO stream recovered resource=pods resourceVersion=300 for=30s
00:00:30 INFO snapshot complete resource=pods reason=gone resourceVersion=300 objects=40 replaced=5 deleted=3 for=30s`},

		{"a gap interrupts the comparison behind a gap", []step{
			gap("pods", change.Gone, "100", "300"), later(1), expires("pods", 350), gap("pods", change.Gone, "350", "500"),
			mended("pods"), later(60),
		}, `
00:00:06 WARN gap: intermediate changes may be missing resource=pods reason=gone lastDelivered=100 resourceVersion=500 since=1999-12-31T23:59:59.000Z objects=40 replaced=5 deleted=3 for=1s`},

		{"another gap interrupts one that is known", []step{
			gap("pods", change.Gone, "100", "300"), later(20), gap("pods", change.Gone, "350", "500"), mended("pods"), later(60),
		}, `
00:00:15 WARN gap: intermediate changes may be missing resource=pods reason=gone lastDelivered=100 resourceVersion=300 since=1999-12-31T23:59:59.000Z
00:00:25 WARN gap: intermediate changes may be missing resource=pods reason=gone lastDelivered=350 resourceVersion=500 since=2000-01-01T00:00:19.000Z objects=40 replaced=5 deleted=3 for=0s`},

		{"the comparison behind a gap that is known begins again", []step{
			gap("pods", change.Epoch, "100", "30"), later(20), gap("pods", change.Epoch, "100", "35"), later(1), mended("pods"),
			later(60),
		}, `
00:00:15 WARN gap: intermediate changes may be missing resource=pods reason=epoch lastDelivered=100 resourceVersion=30 since=1999-12-31T23:59:59.000Z
00:00:21 INFO snapshot complete resource=pods reason=epoch resourceVersion=35 objects=40 replaced=5 deleted=3 for=21s`},

		{"the process ends within a gap", []step{gap("pods", change.Gone, "100", "300"), later(1), (*stage).TellAll, gap("nodes", change.Stale, "7", "8")}, `
00:00:01 WARN gap: intermediate changes may be missing resource=pods reason=gone lastDelivered=100 resourceVersion=300 since=1999-12-31T23:59:59.000Z
00:00:01 WARN gap: intermediate changes may be missing resource=nodes reason=stale lastDelivered=7 resourceVersion=8 since=2000-01-01T00:00:00.000Z`},

		{"a resource is gone within its gap", []step{gap("pods", change.Gone, "100", "300"), later(1), left("pods"), later(60)}, `
00:00:01 WARN gap: intermediate changes may be missing resource=pods reason=gone lastDelivered=100 resourceVersion=300 since=1999-12-31T23:59:59.000Z
00:00:01 INFO stream ended: the definition of its resource was deleted resource=pods`},

		{"a resource is not served for a while, and has a gap", []step{
			gap("pods", change.Gone, "100", "300"), later(1), unserved("pods"), later(30), again("pods"), watched("pods", "300"),
			mended("pods"), later(60),
		}, `
00:00:01 WARN gap: intermediate changes may be missing resource=pods reason=gone lastDelivered=100 resourceVersion=300 since=1999-12-31T23:59:59.000Z
00:00:01 WARN stream waits resource=pods reason="the API server does not serve pods"
00:00:31 INFO stream recovered resource=pods resourceVersion=300 for=30s
00:00:36 WARN gap: intermediate changes may be missing resource=pods reason=gone lastDelivered=100 resourceVersion=300 since=1999-12-31T23:59:59.000Z objects=40 replaced=5 deleted=3 for=0s`},

		{"gaps of several resources at once, of which one lasts", []step{
			gap("pods", change.Gone, "100", "300"), mended("pods"), later(2), gap("nodes", change.Gone, "70", "310"),
			mended("nodes"), gap("secrets", change.Gone, "80", "320"), later(20), mended("secrets"), later(60),
		}, `
00:00:15 WARN gap: intermediate changes may be missing streams=2 gaps="[pods(gone 100-300: 5 replaced, 3 deleted) nodes(gone 70-310: 5 replaced, 3 deleted)]"
00:00:15 WARN gap: intermediate changes may be missing resource=secrets reason=gone lastDelivered=80 resourceVersion=320 since=2000-01-01T00:00:01.000Z
00:00:22 INFO snapshot complete resource=secrets reason=gone resourceVersion=320 objects=0 replaced=5 deleted=3 for=20s`},

		{"a sink lost its log", []step{
			gap("pods", change.Lost, "100", "300", "bus"), later(1), listed("pods", 45, 0),
			reconciled("pods", change.Counts{Synced: 40, Replaced: 5, Deleted: 3}), later(60),
		}, `
00:00:06 WARN gap: intermediate changes may be missing resource=pods reason=lost lastDelivered=100 resourceVersion=300 since=1999-12-31T23:59:59.000Z sinks=[bus] objects=45 replaced=5 deleted=3 synced=40 for=1s`},

		{"the snapshot behind a sink's gap is broken off", []step{gap("pods", change.Lost, "100", "300", "bus"), abandoned("pods"), later(60)}, `
00:00:00 WARN gap: intermediate changes may be missing resource=pods reason=lost lastDelivered=100 resourceVersion=300 since=1999-12-31T23:59:59.000Z sinks=[bus]
00:00:00 INFO snapshot ended before it was complete resource=pods reason=lost sinks=[bus]`},

		{"a snapshot that somebody asked for", []step{
			gap("pods", change.Requested, "100", "300", "bus"), later(100), reconciled("pods", change.Counts{}),
		}, `
00:00:15 INFO snapshot begins resource=pods reason=requested resourceVersion=300 sinks=[bus]
00:01:40 INFO snapshot complete resource=pods reason=requested resourceVersion=300 objects=0 replaced=0 deleted=0 synced=0 for=1m40s`},

		{"the start: one line for all that is watched, and one for all that is compared", []step{
			(*stage).starts, gap("pods", change.Initial, "", "300"), gap("nodes", change.Initial, "", "310"), watched("pods", "300"),
			listed("pods", 40, 0), later(1), watched("nodes", "310"), reconciled("pods", change.Counts{Replaced: 40}),
			reconciled("nodes", change.Counts{Replaced: 2}), later(60),
		}, `
00:00:01 INFO watching streams=2 of=2
00:00:06 INFO snapshot complete streams=2 reason=initial sinks=[] objects=40 replaced=42 deleted=0 for=1s`},

		{"one of the streams of the start is forbidden", []step{
			(*stage).starts, failed("nodes", "forbidden"), watched("pods", "300"), later(60), watched("nodes", "310"),
		}, `
00:00:00 WARN stream failed; retrying resource=nodes error=forbidden
00:00:00 INFO watching streams=1 of=2
00:01:00 INFO stream recovered resource=nodes resourceVersion=310 for=1m0s`},

		{"another history of the cluster", []step{gap("pods", change.Epoch, "100", "30"), mended("pods"), watched("pods", "30"), later(60)}, `
00:00:05 WARN gap: intermediate changes may be missing resource=pods reason=epoch lastDelivered=100 resourceVersion=30 since=1999-12-31T23:59:59.000Z objects=40 replaced=5 deleted=3 for=0s`},

		{"a sink is away and holds nobody up, twice", []step{times(2, away(180), written(), queued(0), later(60))}, `
00:00:05 WARN sink retries sink=bus reason=unreachable error="broker 2 does not answer" waiting=50 waitingBytes=5000 spoolBytes=0 since=2000-01-01T00:00:00Z
00:01:05 WARN sink still fails sink=bus reason=unreachable error="broker 2 does not answer" since=2000-01-01T00:00:00Z for=1m5s attempts=66 streamsHeldUp=0 waiting=650 waitingBytes=65000 spoolBytes=0
00:02:05 WARN sink still fails sink=bus reason=unreachable error="broker 2 does not answer" since=2000-01-01T00:00:00Z for=2m5s attempts=126 streamsHeldUp=0 waiting=1250 waitingBytes=125000 spoolBytes=0
00:03:00 INFO sink accepts records again sink=bus for=3m0s attempts=180 waiting=1790 waitingBytes=179000 spoolBytes=0
00:04:05 WARN sink retries sink=bus reason=unreachable error="broker 2 does not answer" waiting=50 waitingBytes=5000 spoolBytes=0 since=2000-01-01T00:04:00Z
00:05:05 WARN sink still fails sink=bus reason=unreachable error="broker 2 does not answer" since=2000-01-01T00:04:00Z for=1m5s attempts=66 streamsHeldUp=0 waiting=650 waitingBytes=65000 spoolBytes=0
00:06:05 WARN sink still fails sink=bus reason=unreachable error="broker 2 does not answer" since=2000-01-01T00:04:00Z for=2m5s attempts=126 streamsHeldUp=0 waiting=1250 waitingBytes=125000 spoolBytes=0
00:07:00 INFO sink accepts records again sink=bus for=3m0s attempts=180 waiting=1790 waitingBytes=179000 spoolBytes=0`},

		{"a sink is away and holds two streams up, which have gaps", []step{
			holdsUp(0), queued(0), expires("pods", 100), later(1), gap("pods", change.Gone, "100", "300"),
			gap("nodes", change.Gone, "70", "300"), watched("pods", "300"), watched("nodes", "300"), later(1), mended("pods"),
			mended("nodes"), later(90),
		}, begunStory + `
00:03:20 INFO sink accepts records again sink=bus for=3m20s attempts=200 waiting=1990 waitingBytes=199000 spoolBytes=0
00:03:27 WARN gap: intermediate changes may be missing streams=2 gaps="[pods(gone 100-300: 5 replaced, 3 deleted) nodes(gone 70-300: 5 replaced, 3 deleted)]"`},

		{"a sink is away and holds two streams up, and does so for long when it is back", []step{
			holdsUp(0), later(1), (*stage).heldUp, later(90),
		}, begunStory + `
00:03:20 INFO sink accepts records again sink=bus for=3m20s attempts=200 waiting=1990 waitingBytes=199000 spoolBytes=0
00:03:22 WARN sinks hold streams up; the API server will have forgotten what changes meanwhile: bring them back, or give them queue.full: spool sinks=bus streams=1 resource=pods historyLeft=1m38s`},

		{"a sink is back and stops for good", []step{holdsUp(0), later(2), stops("the password is wrong"), later(90)}, begunStory + `
00:03:20 INFO sink accepts records again sink=bus for=3m20s attempts=200 waiting=1990 waitingBytes=199000 spoolBytes=0
00:03:22 ERROR sink stopped, the others continue; fix the cause: the sink is retried within ten minutes, and at the next start sink=bus error="the password is wrong"`},

		{"a sink is back for a moment only", []step{holdsUp(0), later(2), times(6, retried(), later(1))}, begunStory + `
00:03:20 INFO sink accepts records again sink=bus for=3m20s attempts=200 waiting=1990 waitingBytes=199000 spoolBytes=0
00:03:27 WARN sink retries sink=bus reason=unreachable error="nobody listens" waiting=1990 waitingBytes=199000 spoolBytes=0 since=2000-01-01T00:03:22Z`},

		{"a gap has come while a sink was away that held nobody up", []step{
			away(20), gap("pods", change.Gone, "100", "300"), mended("pods"), written(), queued(0), later(60),
		}, `
00:00:05 WARN sink retries sink=bus reason=unreachable error="broker 2 does not answer" waiting=50 waitingBytes=5000 spoolBytes=0 since=2000-01-01T00:00:00Z
00:00:20 INFO sink accepts records again sink=bus for=20s attempts=20 waiting=190 waitingBytes=19000 spoolBytes=0
00:00:25 WARN gap: intermediate changes may be missing resource=pods reason=gone lastDelivered=100 resourceVersion=300 since=2000-01-01T00:00:19.000Z objects=40 replaced=5 deleted=3 for=0s`},

		{"a sink is behind, though it does not fail, and so is a spool that fills", []step{
			opened(), (*stage).fallsBehind, queued(0), later(10), spooled(5, 800), later(10),
		}, `
00:00:00 INFO sink open sink=bus alreadyWritten=0
00:02:00 WARN sink is behind: records come faster than it takes them sink=bus since=2000-01-01T00:00:00Z waiting=122 waitingBytes=30 spoolBytes=238
00:04:11 WARN spool fills; when it is full, the sink holds its streams up: bring the sink back, or raise queue.spool sink=bus spoolBytes=500 limit=1000 waiting=253
00:05:01 INFO sink has caught up sink=bus for=5m1s
00:05:11 WARN spool fills; when it is full, the sink holds its streams up: bring the sink back, or raise queue.spool sink=bus spoolBytes=800 limit=1000 waiting=5`},

		{"a sink is given an old record that another one has held up, and is not behind", []step{
			times(5, (*stage).queuedOld, later(30), queued(0), later(1)),
		}, ""},

		{"a sink that was away has what waited to deliver first, and is not behind", []step{
			opened(), away(100), written(), later(150), queued(0), later(60),
		}, `
00:00:00 INFO sink open sink=bus alreadyWritten=0
00:00:05 WARN sink retries sink=bus reason=unreachable error="broker 2 does not answer" waiting=50 waitingBytes=5000 spoolBytes=0 since=2000-01-01T00:00:00Z
00:01:05 WARN sink still fails sink=bus reason=unreachable error="broker 2 does not answer" since=2000-01-01T00:00:00Z for=1m5s attempts=66 streamsHeldUp=0 waiting=650 waitingBytes=65000 spoolBytes=0
00:01:40 INFO sink accepts records again sink=bus for=1m40s attempts=100 waiting=990 waitingBytes=99000 spoolBytes=0`},

		{"a sink asks again at every election", []step{times(100, (*stage).elects, later(1), written())}, ""},

		{"a sink that another writer has is not tried again", []step{fenced(), later(700)}, `
00:00:00 ERROR sink stopped, the others continue; it is opened again at the next start only, since another writer has it sink=bus error="another exporter writes"`},

		{"a sink stays stopped when it is tried again", []step{
			stops("the password is wrong"), later(1), stops("the password is wrong"), later(60), stops("the password is wrong"), later(120),
			stops("the certificate is old"), later(10), opened(), stops("the certificate is old"),
		}, `
00:00:00 ERROR sink stopped, the others continue; fix the cause: the sink is retried within ten minutes, and at the next start sink=bus error="the password is wrong"
00:01:01 WARN sink still fails sink=bus error="the password is wrong" since=2000-01-01T00:00:00Z for=1m1s attempts=3 streamsHeldUp=0 waiting=0 waitingBytes=0 spoolBytes=0
00:03:01 ERROR sink stopped, the others continue; fix the cause: the sink is retried within ten minutes, and at the next start sink=bus error="the certificate is old"
00:03:11 INFO sink accepts records again sink=bus for=3m11s attempts=4 waiting=0 waitingBytes=0 spoolBytes=0
00:03:11 ERROR sink stopped, the others continue; fix the cause: the sink is retried within ten minutes, and at the next start sink=bus error="the certificate is old"`},
	} {
		t.Run(c.what, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { expectLog(t, c.script, c.want) }) })
	}
}

// expectLog plays the script and compares the log with lines of time, level, text and attributes.
func expectLog(t *testing.T, script []step, want string) {
	t.Helper()
	var log bytes.Buffer
	s := newStage(New(Options{
		Streams: []change.Stream{pods(), streamOf("nodes")}, Sinks: []string{"bus"}, Logger: slog.New(slog.DiscardHandler),
		CountObjects: func(string, change.Stream) (int, error) { return 0, nil },
	}))
	s.Opened("bus", 0)
	for _, stream := range s.Streams {
		s.Watching(stream, "100")
	}
	s.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			a.Value = slog.StringValue(a.Value.Time().UTC().Format(time.TimeOnly))
		}
		return a
	}}))
	times(1, script...)(s)
	got := strings.NewReplacer("time=", "", "level=", "").Replace(log.String())
	var lines strings.Builder
	for line := range strings.Lines(got) {
		lines.WriteString("\n" + withoutQuotes(strings.TrimSpace(line)))
	}
	if lines.String() != want {
		t.Errorf("the log says:%s\nwant:%s", lines.String(), want)
	}
}

// withoutQuotes takes the line's text out of its quotes.
func withoutQuotes(line string) string {
	before, rest, _ := strings.Cut(line, " msg=")
	if quoted, isQuoted := strings.CutPrefix(rest, `"`); isQuoted {
		text, after, _ := strings.Cut(quoted, `"`)
		return before + " " + text + after
	}
	return before + " " + rest
}
