package telemetry

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// stage is where a story plays: one process, of which only what happens and when is known.
type stage struct{ *Telemetry }

// later lets so many seconds pass, in which the log is looked after as in a process.
func (s stage) later(seconds int) {
	for range seconds {
		time.Sleep(time.Second)
		s.CheckHistory()
		s.CheckGaps()
	}
}

// starts makes the streams those of a process that has just begun.
func (s stage) starts() {
	s.states.started = false
	for _, stream := range s.Streams {
		s.states.streams[stream.String()] = s.newStream(stream, false)
	}
}

func streamOf(resource string) change.Stream {
	return change.Stream{Resource: change.Resource{Version: "v1", Name: resource}}
}

// gapIn is what the source tells of a gap of the resource, up to its begin.
func gapIn(s stage, resource string, reason change.Reason, from, to string, sinks ...string) (change.Stream, *change.Snapshot) {
	stream := streamOf(resource)
	snapshot := &change.Snapshot{Reason: reason, From: from, ResourceVersion: to, Sinks: sinks, Since: time.Now().Add(-time.Second).UTC()}
	s.Reconciling(stream, snapshot)
	return stream, snapshot
}

// mends is the rest.
func mends(s stage, stream change.Stream, snapshot *change.Snapshot) {
	s.Listed(stream, 40, 0)
	snapshot.Counts = change.Counts{Replaced: 5, Deleted: 3}
	s.Reconciled(stream, snapshot)
}

// isAway lets the sink fail for so long, each second.
func isAway(s stage, seconds int) {
	for i := range seconds {
		s.Queued("bus", fifo.Levels{Records: 10 * i, Bytes: 1000 * i, Oldest: time.Now().Add(-time.Duration(i) * time.Second)})
		s.Retried("bus", "unreachable", errors.New("nobody listens"))
		s.later(1)
	}
}

// holdsUp is such an outage, in which two quiet streams wait for the sink, and then none for so many seconds, up to the
// first batch after it.
func holdsUp(s stage, none int) {
	began := time.Now()
	s.Follow(standing(map[string]time.Time{"pods": began, "nodes": began}))
	isAway(s, 200)
	s.Follow(standing(nil))
	isAway(s, none)
	s.Written("bus", records(1), time.Millisecond)
}

// begunStory is what the log says of it until then.
const begunStory = `
00:00:05 WARN sink retries sink=bus reason=unreachable error="nobody listens" waiting=50 waitingBytes=5000 spoolBytes=0 since=2000-01-01T00:00:00Z
00:01:05 WARN sink still fails sink=bus reason=unreachable error="nobody listens" since=2000-01-01T00:00:00Z for=1m5s attempts=66 streamsHeldUp=0 waiting=650 waitingBytes=65000 spoolBytes=0
00:02:05 WARN sink still fails sink=bus reason=unreachable error="nobody listens" since=2000-01-01T00:00:00Z for=2m5s attempts=126 streamsHeldUp=0 waiting=1250 waitingBytes=125000 spoolBytes=0
00:02:31 WARN sinks hold streams up; the API server will have forgotten what changes meanwhile: bring them back, or give them queue.full: spool sinks=bus streams=2 resource=nodes historyLeft=2m29s`

func expired(n int) error { return fmt.Errorf("too old resource version: %d (%d)", n, n+100) }

// TestI4WhatHappensIsAStory: of each thing that may happen, alone and with others, the log says what, when, and what
// was lost, in few lines.
func TestI4WhatHappensIsAStory(t *testing.T) {
	for _, c := range []struct {
		what   string
		script func(s stage)
		want   string
	}{
		{"a stream fails and recovers", func(s stage) {
			s.StreamFailed(pods(), errors.New("connection refused"))
			s.StreamFailed(pods(), errors.New("connection refused"))
			s.later(90)
			s.Watching(pods(), "120")
			s.later(60)
		}, `
00:00:00 WARN stream failed; retrying resource=pods error="connection refused"
00:01:30 INFO stream recovered resource=pods resourceVersion=120 for=1m30s`},

		{"a stream is forbidden for as long as we look", func(s stage) {
			s.StreamFailed(pods(), errors.New("pods is forbidden"))
			s.later(600)
		}, `
00:00:00 WARN stream failed; retrying resource=pods error="pods is forbidden"`},

		{"the credentials are revoked, and taken again", func(s stage) {
			pods := change.Stream{Resource: change.Resource{Version: "v1", Name: "pods"}}
			nodes := change.Stream{Resource: change.Resource{Version: "v1", Name: "nodes"}}
			s.Follow(standing(map[string]time.Time{"pods": {}, "nodes": {}}))
			s.StreamCutOff(pods, Refused, errors.New("Unauthorized"))
			s.later(10)
			for range 14 {
				s.StreamCutOff(nodes, Refused, errors.New("Unauthorized"))
				s.later(10)
			}
			s.Watching(nodes, "120")
			s.Watching(pods, "120")
			s.later(200)
		}, `
00:00:00 WARN the API server refuses the credentials; retrying: renew the exporter's token or certificate resource=pods error=Unauthorized
00:01:00 WARN streams still fail streams=2 resource=pods error=Unauthorized since=2000-01-01T00:00:00Z for=1m0s historyLeft=4m0s
00:02:00 WARN streams still fail streams=2 resource=pods error=Unauthorized since=2000-01-01T00:00:00Z for=2m0s historyLeft=3m0s
00:02:30 INFO the API server takes the credentials again for=2m30s`},

		{"the API server is away, and back", func(s stage) {
			pods := change.Stream{Resource: change.Resource{Version: "v1", Name: "pods"}}
			nodes := change.Stream{Resource: change.Resource{Version: "v1", Name: "nodes"}}
			s.StreamCutOff(pods, Unreachable, errors.New("nobody answers in time"))
			s.StreamCutOff(nodes, Unreachable, errors.New("nobody answers in time"))
			s.later(10)
			s.StreamCutOff(pods, Unreachable, errors.New("connection refused"))
			s.StreamCutOff(nodes, Unreachable, errors.New("connection refused"))
			s.later(10)
			s.Watching(nodes, "120")
			s.Watching(pods, "120")
			s.later(200)
		}, `
00:00:00 WARN the API server does not answer; retrying resource=pods error="nobody answers in time"
00:00:20 INFO the API server answers again for=20s`},

		{"the credentials are revoked, and those that are taken then may do less, or come too late", func(s stage) {
			pods := change.Stream{Resource: change.Resource{Version: "v1", Name: "pods"}}
			nodes := change.Stream{Resource: change.Resource{Version: "v1", Name: "nodes"}}
			s.Follow(standing(map[string]time.Time{"pods": {}, "nodes": {}}))
			s.StreamFailed(nodes, errors.New("connection refused"))
			s.later(10)
			s.StreamCutOff(pods, Refused, errors.New("Unauthorized"))
			s.StreamCutOff(nodes, Refused, errors.New("Unauthorized"))
			s.later(30)
			s.StreamFailed(nodes, errors.New("nodes is forbidden"))
			s.StreamExpired(pods, expired(100))
			stream, snapshot := gapIn(s, "pods", change.Gone, "100", "300")
			s.Watching(pods, "300")
			mends(s, stream, snapshot)
			s.Watching(nodes, "120")
			s.later(10)
		}, `
00:00:00 WARN stream failed; retrying resource=nodes error="connection refused"
00:00:10 WARN the API server refuses the credentials; retrying: renew the exporter's token or certificate resource=pods error=Unauthorized
00:00:40 WARN stream failed; retrying resource=nodes error="nodes is forbidden"
00:00:40 INFO the API server takes the credentials again for=30s
00:00:40 INFO stream recovered resource=nodes resourceVersion=120 for=40s
00:00:45 WARN gap: intermediate changes may be missing resource=pods reason=gone lastDelivered=100 resourceVersion=300 since=2000-01-01T00:00:39.000Z error="too old resource version: 100 (200)" objects=40 replaced=5 deleted=3 for=0s`},

		{"the state cannot be saved, and is saved again", func(s stage) {
			for i := range 90 {
				s.CommitFailed(fmt.Errorf("only %d MiB free", i))
				s.later(1)
			}
			s.Committed(0)
			s.Committed(0)
			s.later(60)
		}, `
00:00:00 ERROR state not saved; retrying error="only 0 MiB free"
00:01:30 INFO state saved again for=1m30s attempts=90 since=2000-01-01T00:00:00Z`},

		{"a gap, and no sink fails", func(s stage) {
			s.StreamExpired(pods(), expired(100))
			stream, snapshot := gapIn(s, "pods", change.Gone, "100", "300")
			s.Watching(pods(), "300")
			mends(s, stream, snapshot)
			s.later(60)
		}, `
00:00:05 WARN gap: intermediate changes may be missing resource=pods reason=gone lastDelivered=100 resourceVersion=300 since=1999-12-31T23:59:59.000Z error="too old resource version: 100 (200)" objects=40 replaced=5 deleted=3 for=0s`},

		{"a gap without a failure", func(s stage) {
			stream, snapshot := gapIn(s, "pods", change.Stale, "100", "300")
			s.Watching(pods(), "300")
			s.later(3)
			mends(s, stream, snapshot)
			s.later(60)
		}, `
00:00:08 WARN gap: intermediate changes may be missing resource=pods reason=stale lastDelivered=100 resourceVersion=300 since=1999-12-31T23:59:59.000Z objects=40 replaced=5 deleted=3 for=3s`},

		{"a gap that takes long to compare", func(s stage) {
			s.StreamExpired(pods(), expired(100))
			stream, snapshot := gapIn(s, "pods", change.Gone, "100", "300")
			s.Watching(pods(), "300")
			s.Listed(stream, 500, 1500)
			s.later(150)
			mends(s, stream, snapshot)
			s.later(60)
		}, `
00:00:15 WARN gap: intermediate changes may be missing resource=pods reason=gone lastDelivered=100 resourceVersion=300 since=1999-12-31T23:59:59.000Z error="too old resource version: 100 (200)"
00:01:15 INFO gap is still being compared gaps=1 resource=pods reason=gone for=1m15s objects=500 percent=25
00:02:15 INFO gap is still being compared gaps=1 resource=pods reason=gone for=2m15s objects=500 percent=25
00:02:30 INFO reconciled resource=pods reason=gone resourceVersion=300 objects=540 replaced=5 deleted=3 for=2m30s`},

		{"a stream is down, and its history is gone when it is up", func(s stage) {
			s.StreamFailed(pods(), errors.New("connection refused"))
			s.later(400)
			s.StreamExpired(pods(), expired(100))
			stream, snapshot := gapIn(s, "pods", change.Gone, "100", "300")
			s.Watching(pods(), "300")
			mends(s, stream, snapshot)
			s.later(60)
		}, `
00:00:00 WARN stream failed; retrying resource=pods error="connection refused"
00:06:40 INFO stream recovered resource=pods resourceVersion=300 for=6m40s
00:06:45 WARN gap: intermediate changes may be missing resource=pods reason=gone lastDelivered=100 resourceVersion=300 since=2000-01-01T00:06:39.000Z error="too old resource version: 100 (200)" objects=40 replaced=5 deleted=3 for=0s`},

		{"the history is gone, and the gap waits for the line", func(s stage) {
			s.StreamExpired(pods(), expired(100))
			s.later(40)
			stream, snapshot := gapIn(s, "pods", change.Gone, "100", "300")
			s.Watching(pods(), "300")
			mends(s, stream, snapshot)
			s.later(60)
		}, `
00:00:15 WARN stream failed; retrying resource=pods error="too old resource version: 100 (200)"
00:00:40 INFO stream recovered resource=pods resourceVersion=300 for=25s
00:00:45 WARN gap: intermediate changes may be missing resource=pods reason=gone lastDelivered=100 resourceVersion=300 since=2000-01-01T00:00:39.000Z objects=40 replaced=5 deleted=3 for=0s`},

		{"the history is said to be gone again and again", func(s stage) {
			for i := range 80 {
				s.StreamExpired(pods(), expired(i))
				s.later(1)
			}
		}, `
00:00:15 WARN stream failed; retrying resource=pods error="too old resource version: 0 (100)"
00:01:15 WARN stream failed; retrying resource=pods error="too old resource version: 15 (115)"`},

		{"the history is said to be gone, and no gap follows", func(s stage) {
			s.StreamExpired(pods(), expired(100))
			s.later(1)
			s.Watching(pods(), "300")
			s.later(60)
		}, `
00:00:01 WARN stream failed, and recovered without a gap resource=pods resourceVersion=300 error="too old resource version: 100 (200)"`},

		{"the comparison behind a gap fails for a while", func(s stage) {
			s.StreamExpired(pods(), expired(100))
			stream, snapshot := gapIn(s, "pods", change.Gone, "100", "300")
			s.Watching(pods(), "300")
			s.StreamFailed(pods(), errors.New("read a snapshot of pods: forbidden"))
			s.later(30)
			s.Watching(pods(), "300")
			mends(s, stream, snapshot)
			s.later(60)
		}, `
00:00:00 WARN stream failed; retrying resource=pods error="read a snapshot of pods: forbidden"
00:00:15 WARN gap: intermediate changes may be missing resource=pods reason=gone lastDelivered=100 resourceVersion=300 since=1999-12-31T23:59:59.000Z error="too old resource version: 100 (200)"
00:00:30 INFO stream recovered resource=pods resourceVersion=300 for=30s
00:00:30 INFO reconciled resource=pods reason=gone resourceVersion=300 objects=40 replaced=5 deleted=3 for=30s`},

		{"a gap interrupts the comparison behind a gap", func(s stage) {
			gapIn(s, "pods", change.Gone, "100", "300")
			s.later(1)
			s.StreamExpired(pods(), expired(350))
			stream, snapshot := gapIn(s, "pods", change.Gone, "350", "500")
			mends(s, stream, snapshot)
			s.later(60)
		}, `
00:00:06 WARN gap: intermediate changes may be missing resource=pods reason=gone lastDelivered=100 resourceVersion=500 since=1999-12-31T23:59:59.000Z objects=40 replaced=5 deleted=3 for=1s`},

		{"another gap interrupts one that is known", func(s stage) {
			gapIn(s, "pods", change.Gone, "100", "300")
			s.later(20)
			stream, snapshot := gapIn(s, "pods", change.Gone, "350", "500")
			mends(s, stream, snapshot)
			s.later(60)
		}, `
00:00:15 WARN gap: intermediate changes may be missing resource=pods reason=gone lastDelivered=100 resourceVersion=300 since=1999-12-31T23:59:59.000Z
00:00:25 WARN gap: intermediate changes may be missing resource=pods reason=gone lastDelivered=350 resourceVersion=500 since=2000-01-01T00:00:19.000Z objects=40 replaced=5 deleted=3 for=0s`},

		{"the reconcile behind a gap that is known begins again", func(s stage) {
			gapIn(s, "pods", change.Epoch, "100", "30")
			s.later(20)
			stream, snapshot := gapIn(s, "pods", change.Epoch, "100", "35")
			s.later(1)
			mends(s, stream, snapshot)
			s.later(60)
		}, `
00:00:15 WARN gap: intermediate changes may be missing resource=pods reason=epoch lastDelivered=100 resourceVersion=30 since=1999-12-31T23:59:59.000Z
00:00:21 INFO reconciled resource=pods reason=epoch resourceVersion=35 objects=40 replaced=5 deleted=3 for=21s`},

		{"the process ends within a gap", func(s stage) {
			gapIn(s, "pods", change.Gone, "100", "300")
			s.later(1)
			s.TellAll()
			gapIn(s, "nodes", change.Stale, "7", "8")
		}, `
00:00:01 WARN gap: intermediate changes may be missing resource=pods reason=gone lastDelivered=100 resourceVersion=300 since=1999-12-31T23:59:59.000Z
00:00:01 WARN gap: intermediate changes may be missing resource=nodes reason=stale lastDelivered=7 resourceVersion=8 since=2000-01-01T00:00:00.000Z`},

		{"a resource is gone within its gap", func(s stage) {
			gapIn(s, "pods", change.Gone, "100", "300")
			s.later(1)
			s.Left(pods())
			s.later(60)
		}, `
00:00:01 WARN gap: intermediate changes may be missing resource=pods reason=gone lastDelivered=100 resourceVersion=300 since=1999-12-31T23:59:59.000Z
00:00:01 INFO stream ended: the definition of its resource was deleted resource=pods`},

		{"a resource is not served for a while, and has a gap", func(s stage) {
			stream, snapshot := gapIn(s, "pods", change.Gone, "100", "300")
			s.later(1)
			s.Waiting(stream, "the API server does not serve pods")
			s.later(30)
			s.Reconciling(stream, snapshot)
			s.Watching(stream, "300")
			mends(s, stream, snapshot)
			s.later(60)
		}, `
00:00:01 WARN gap: intermediate changes may be missing resource=pods reason=gone lastDelivered=100 resourceVersion=300 since=1999-12-31T23:59:59.000Z
00:00:01 WARN stream waits resource=pods reason="the API server does not serve pods"
00:00:31 INFO stream recovered resource=pods resourceVersion=300 for=30s
00:00:36 WARN gap: intermediate changes may be missing resource=pods reason=gone lastDelivered=100 resourceVersion=300 since=1999-12-31T23:59:59.000Z objects=40 replaced=5 deleted=3 for=0s`},

		{"gaps of several resources at once, of which one lasts", func(s stage) {
			one, first := gapIn(s, "pods", change.Gone, "100", "300")
			mends(s, one, first)
			s.later(2)
			other, second := gapIn(s, "nodes", change.Gone, "70", "310")
			mends(s, other, second)
			long, third := gapIn(s, "secrets", change.Gone, "80", "320")
			s.later(20)
			mends(s, long, third)
			s.later(60)
		}, `
00:00:15 WARN gap: intermediate changes may be missing streams=2 gaps="[pods(gone 100-300: 5 replaced, 3 deleted) nodes(gone 70-310: 5 replaced, 3 deleted)]"
00:00:15 WARN gap: intermediate changes may be missing resource=secrets reason=gone lastDelivered=80 resourceVersion=320 since=2000-01-01T00:00:01.000Z
00:00:22 INFO reconciled resource=secrets reason=gone resourceVersion=320 objects=0 replaced=5 deleted=3 for=20s`},

		{"a sink lost its log", func(s stage) {
			stream, snapshot := gapIn(s, "pods", change.Lost, "100", "300", "bus")
			s.later(1)
			snapshot.Counts.Synced = 40
			s.Listed(stream, 45, 0)
			snapshot.Counts.Replaced, snapshot.Counts.Deleted = 5, 3
			s.Reconciled(stream, snapshot)
			s.later(60)
		}, `
00:00:06 WARN gap: intermediate changes may be missing resource=pods reason=lost lastDelivered=100 resourceVersion=300 since=1999-12-31T23:59:59.000Z sinks=[bus] objects=45 replaced=5 deleted=3 synced=40 for=1s`},

		{"the snapshot behind a sink's gap is broken off", func(s stage) {
			stream, snapshot := gapIn(s, "pods", change.Absent, "100", "300", "bus")
			s.Abandoned(stream, snapshot)
			s.later(60)
		}, `
00:00:00 WARN gap: intermediate changes may be missing resource=pods reason=absent lastDelivered=100 resourceVersion=300 since=1999-12-31T23:59:59.000Z sinks=[bus]
00:00:00 INFO snapshot ended before it was complete resource=pods reason=absent sinks=[bus]`},

		{"a snapshot that somebody asked for", func(s stage) {
			stream, snapshot := gapIn(s, "pods", change.Requested, "100", "300", "bus")
			s.later(100)
			s.Reconciled(stream, snapshot)
		}, `
00:00:15 INFO reconcile starts resource=pods reason=requested resourceVersion=300 sinks=[bus]
00:01:40 INFO reconciled resource=pods reason=requested resourceVersion=300 objects=0 replaced=0 deleted=0 synced=0 for=1m40s`},

		{"the start: one line for all that is watched, and one for all that is compared", func(s stage) {
			s.starts()
			pods, one := gapIn(s, "pods", change.Initial, "", "300")
			nodes, other := gapIn(s, "nodes", change.Initial, "", "310")
			s.Watching(pods, "300")
			s.Listed(pods, 40, 0)
			s.later(1)
			s.Watching(nodes, "310")
			one.Counts.Replaced, other.Counts.Replaced = 40, 2
			s.Reconciled(pods, one)
			s.Reconciled(nodes, other)
			s.later(60)
		}, `
00:00:01 INFO watching streams=2 of=2
00:00:06 INFO reconciled streams=2 reason=initial sinks=[] objects=40 replaced=42 deleted=0 for=1s`},

		{"one of the streams of the start is forbidden", func(s stage) {
			s.starts()
			s.StreamFailed(streamOf("nodes"), errors.New("forbidden"))
			s.Watching(streamOf("pods"), "300")
			s.later(60)
			s.Watching(streamOf("nodes"), "310")
		}, `
00:00:00 WARN stream failed; retrying resource=nodes error=forbidden
00:00:00 INFO watching streams=1 of=2
00:01:00 INFO stream recovered resource=nodes resourceVersion=310 for=1m0s`},

		{"another history of the cluster", func(s stage) {
			stream, snapshot := gapIn(s, "pods", change.Epoch, "100", "30")
			mends(s, stream, snapshot)
			s.Watching(stream, "30")
			s.later(60)
		}, `
00:00:05 WARN gap: intermediate changes may be missing resource=pods reason=epoch lastDelivered=100 resourceVersion=30 since=1999-12-31T23:59:59.000Z objects=40 replaced=5 deleted=3 for=0s`},

		{"a sink is away and holds nobody up", func(s stage) {
			isAway(s, 180)
			s.Written("bus", records(1), time.Millisecond)
			s.Queued("bus", fifo.Levels{})
			s.later(60)
		}, `
00:00:05 WARN sink retries sink=bus reason=unreachable error="nobody listens" waiting=50 waitingBytes=5000 spoolBytes=0 since=2000-01-01T00:00:00Z
00:01:05 WARN sink still fails sink=bus reason=unreachable error="nobody listens" since=2000-01-01T00:00:00Z for=1m5s attempts=66 streamsHeldUp=0 waiting=650 waitingBytes=65000 spoolBytes=0
00:02:05 WARN sink still fails sink=bus reason=unreachable error="nobody listens" since=2000-01-01T00:00:00Z for=2m5s attempts=126 streamsHeldUp=0 waiting=1250 waitingBytes=125000 spoolBytes=0
00:03:00 INFO sink accepts records again sink=bus for=3m0s attempts=180 lost=nothing waiting=1790 waitingBytes=179000 spoolBytes=0`},

		{"a sink is away and holds two streams up, which have gaps", func(s stage) {
			holdsUp(s, 0)
			s.Queued("bus", fifo.Levels{})
			s.StreamExpired(pods(), expired(100))
			s.later(1)
			one, first := gapIn(s, "pods", change.Gone, "100", "300")
			other, second := gapIn(s, "nodes", change.Gone, "70", "300")
			s.Watching(one, "300")
			s.Watching(other, "300")
			s.later(1)
			mends(s, one, first)
			mends(s, other, second)
			s.later(90)
		}, begunStory + `
00:03:27 WARN gap: intermediate changes may be missing streams=2 gaps="[pods(gone 100-300: 5 replaced, 3 deleted) nodes(gone 70-300: 5 replaced, 3 deleted)]"
00:03:27 INFO sink accepts records again sink=bus for=3m20s attempts=200 lost="intermediate states: the line of the gap tells which" back=2000-01-01T00:03:20Z waiting=1990 waitingBytes=199000 spoolBytes=0`},

		{"a sink is away and holds two streams up, which go on", func(s stage) {
			holdsUp(s, 0)
			s.later(15)
			s.Queued("bus", fifo.Levels{Records: 1, Oldest: time.Now()})
			s.later(90)
		}, begunStory + `
00:03:36 INFO sink accepts records again sink=bus for=3m20s attempts=200 lost=nothing back=2000-01-01T00:03:20Z waiting=1990 waitingBytes=199000 spoolBytes=0`},

		{"a sink is away and holds two streams up, and again for a moment while it takes what waits", func(s stage) {
			began := time.Now()
			holdsUp(s, 0)
			s.later(1)
			s.Follow(standing(map[string]time.Time{"pods": began}))
			s.Queued("bus", fifo.Levels{Records: 9, Oldest: began})
			s.later(3)
			s.Follow(standing(nil))
			s.Queued("bus", fifo.Levels{})
			s.later(90)
		}, begunStory + `
00:03:30 INFO sink accepts records again sink=bus for=3m20s attempts=200 lost=nothing back=2000-01-01T00:03:20Z waiting=1990 waitingBytes=199000 spoolBytes=0`},

		{"a sink is away and holds two streams up, and does so for long when it is back", func(s stage) {
			began := time.Now()
			holdsUp(s, 0)
			s.later(1)
			s.Follow(standing(map[string]time.Time{"pods": began}))
			s.Queued("bus", fifo.Levels{Records: 9, Oldest: began})
			s.later(90)
		}, begunStory + `
00:04:20 INFO sink accepts records again sink=bus for=3m20s attempts=200 lost="not known yet: streams were held up; the line of a gap names each that lost states" back=2000-01-01T00:03:20Z waiting=1990 waitingBytes=199000 spoolBytes=0
00:04:21 WARN sinks hold streams up; the API server will have forgotten what changes meanwhile: bring them back, or give them queue.full: spool sinks=bus streams=1 resource=pods historyLeft=39s`},

		{"a sink is away and holds two streams up, of which none waits at its end", func(s stage) {
			holdsUp(s, 3)
			s.Queued("bus", fifo.Levels{})
			s.later(90)
		}, begunStory + `
00:03:33 INFO sink accepts records again sink=bus for=3m23s attempts=203 lost=nothing back=2000-01-01T00:03:23Z waiting=20 waitingBytes=2000 spoolBytes=0`},

		{"a sink is away and holds two streams up, of which one has a late gap", func(s stage) {
			holdsUp(s, 0)
			s.Queued("bus", fifo.Levels{})
			s.later(8)
			s.StreamExpired(pods(), expired(100))
			s.later(4)
			stream, snapshot := gapIn(s, "pods", change.Gone, "100", "300")
			s.Watching(stream, "300")
			s.later(1)
			mends(s, stream, snapshot)
			s.later(90)
		}, begunStory + `
00:03:38 WARN gap: intermediate changes may be missing resource=pods reason=gone lastDelivered=100 resourceVersion=300 since=2000-01-01T00:03:31.000Z error="too old resource version: 100 (200)" objects=40 replaced=5 deleted=3 for=1s
00:03:38 INFO sink accepts records again sink=bus for=3m20s attempts=200 lost="intermediate states: the line of the gap tells which" back=2000-01-01T00:03:20Z waiting=1990 waitingBytes=199000 spoolBytes=0`},

		{"a sink is away and holds two streams up, and takes long for what waits", func(s stage) {
			holdsUp(s, 0)
			s.later(90)
		}, begunStory + `
00:04:20 INFO sink accepts records again sink=bus for=3m20s attempts=200 lost="not known yet: streams were held up; the line of a gap names each that lost states" back=2000-01-01T00:03:20Z waiting=1990 waitingBytes=199000 spoolBytes=0`},

		{"a sink is away and holds two streams up, and the process ends when it is back", func(s stage) {
			holdsUp(s, 0)
			s.later(2)
			s.TellAll()
		}, begunStory + `
00:03:22 INFO sink accepts records again sink=bus for=3m20s attempts=200 lost="not known yet: streams were held up; the line of a gap names each that lost states" back=2000-01-01T00:03:20Z waiting=1990 waitingBytes=199000 spoolBytes=0`},

		{"a sink is back and stops for good", func(s stage) {
			holdsUp(s, 0)
			s.later(2)
			s.Stopped("bus", errors.New("the password is wrong"))
			s.later(90)
		}, begunStory + `
00:03:22 INFO sink accepts records again sink=bus for=3m20s attempts=200 lost="not known yet: streams were held up; the line of a gap names each that lost states" back=2000-01-01T00:03:20Z waiting=1990 waitingBytes=199000 spoolBytes=0
00:03:22 ERROR sink stopped, the others continue; fix the cause: the sink is retried within ten minutes, and at the next start sink=bus error="the password is wrong"`},

		{"a sink is back for a moment only", func(s stage) {
			holdsUp(s, 0)
			s.later(2)
			for range 6 {
				s.Retried("bus", "unreachable", errors.New("nobody listens"))
				s.later(1)
			}
		}, begunStory + `
00:03:27 INFO sink accepts records again sink=bus for=3m20s attempts=200 lost="not known yet: streams were held up; the line of a gap names each that lost states" back=2000-01-01T00:03:20Z waiting=1990 waitingBytes=199000 spoolBytes=0
00:03:27 WARN sink retries sink=bus reason=unreachable error="nobody listens" waiting=1990 waitingBytes=199000 spoolBytes=0 since=2000-01-01T00:03:22Z`},

		{"a gap has come while a sink was away that held nobody up", func(s stage) {
			isAway(s, 20)
			stream, snapshot := gapIn(s, "pods", change.Gone, "100", "300")
			mends(s, stream, snapshot)
			s.Written("bus", records(1), time.Millisecond)
			s.Queued("bus", fifo.Levels{})
			s.later(60)
		}, `
00:00:05 WARN sink retries sink=bus reason=unreachable error="nobody listens" waiting=50 waitingBytes=5000 spoolBytes=0 since=2000-01-01T00:00:00Z
00:00:20 INFO sink accepts records again sink=bus for=20s attempts=20 lost="intermediate states: the line of the gap tells which" waiting=190 waitingBytes=19000 spoolBytes=0
00:00:25 WARN gap: intermediate changes may be missing resource=pods reason=gone lastDelivered=100 resourceVersion=300 since=2000-01-01T00:00:19.000Z objects=40 replaced=5 deleted=3 for=0s`},
	} {
		t.Run(c.what, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { expectLog(t, c.script, c.want) }) })
	}
}

// expectLog plays the script and compares the log with lines of time, level, text and attributes.
func expectLog(t *testing.T, script func(stage), want string) {
	t.Helper()
	var log bytes.Buffer
	s := stage{New(Options{
		Streams: []change.Stream{pods(), {Resource: change.Resource{Version: "v1", Name: "nodes"}}}, Sinks: []string{"bus"}, Logger: slog.New(slog.DiscardHandler),
		CountObjects: func(string, change.Stream) (int, error) { return 0, nil },
	})}
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
	script(s)
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

// TestI4AnOutageThatARestartIsInIsOne: what an earlier process has left on disk says since when, and /readyz says why.
func TestI4AnOutageThatARestartIsInIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := stage{New(Options{Sinks: []string{"bus"}, Logger: slog.New(slog.NewTextHandler(&log, nil))})}
		began := time.Now().Add(-time.Hour)
		s.Queued("bus", fifo.Levels{SpoolRecords: 7, SpoolBytes: 700, Oldest: began})
		for range 30 {
			s.Retried("bus", "unreachable", errors.New("nobody listens"))
			s.later(1)
		}
		answer := httptest.NewRecorder()
		s.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		if got := answer.Body.String(); got != "sink bus is not open: nobody listens\n" {
			t.Errorf("/readyz says %q", got)
		}
		if got := s.Status().Sinks["bus"].FailingSince; !got.Equal(began) {
			t.Errorf("it fails since %s, want %s", got, began)
		}
		s.Opened("bus", 0)
		s.Written("bus", records(7), time.Second)
		s.later(60)
		if got := log.String(); !strings.Contains(got, `msg="sink accepts records again" sink=bus for=1h0m30s`) || strings.Count(got, "WARN") != 1 {
			t.Errorf("the log says %s", got)
		}
		s.Queued("bus", fifo.Levels{Records: 1, Oldest: began})
		if s.Retried("bus", "unreachable", errors.New("nobody listens")); !s.Status().Sinks["bus"].FailingSince.Equal(time.Now()) {
			t.Error("the next outage has begun before it")
		}
	})
}
