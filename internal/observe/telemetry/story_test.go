package telemetry

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// TestI4WhatHappensIsAStory: of each thing that may happen, alone and with others, the log says what, when, and what
// was lost, in few lines, and so do metrics and the status where a story asks for them. What they say is in
// testdata/stories.txt, which UPDATE_GOLDEN=1 writes.
func TestI4WhatHappensIsAStory(t *testing.T) {
	var all strings.Builder
	golden := filepath.Join("testdata", "stories.txt")
	written, err := os.ReadFile(golden)
	must(t, err)
	for _, c := range stories() {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := play(c.script)
				fmt.Fprintf(&all, "== %s\n%s\n", c.what, got)
				_, rest, _ := strings.Cut(string(written), "== "+c.what+"\n")
				if want, _, _ := strings.Cut(rest, "\n== "); strings.TrimSpace(got) != strings.TrimSpace(want) {
					t.Errorf("told is\n%s\nwant\n%s", got, want)
				}
			})
		})
	}
	if os.Getenv("UPDATE_GOLDEN") != "" {
		must(t, os.WriteFile(golden, []byte(all.String()), 0o644))
	}
}

// tale is what happens in a process.
type tale struct {
	what   string
	script []step
}

func stories() []tale {
	return []tale{
		{"a stream fails and recovers", []step{
			failed("pods", "connection refused"), failed("pods", "connection refused"), later(90), watched("pods", "120"),
			later(60),
		}},
		{"a stream is forbidden for as long as we look", []step{failed("pods", "pods is forbidden"), later(600)}},
		{"the credentials are revoked, and taken again", []step{
			(*stage).knowsBoth, cutOff("pods", Refused, "Unauthorized"), later(10),
			times(14, cutOff("nodes", Refused, "Unauthorized"), later(10)), watched("nodes", "120"), watched("pods", "120"),
			later(200),
		}},
		{"the API server is away, and back", []step{
			cutOff("pods", Unreachable, "nobody answers in time"), cutOff("nodes", Unreachable, "nobody answers in time"),
			later(10), cutOff("pods", Unreachable, "connection refused"), cutOff("nodes", Unreachable, "connection refused"),
			later(10), watched("nodes", "120"), watched("pods", "120"), later(200),
		}},
		{"the credentials are revoked, and those that are taken then may do less, or come too late", []step{
			(*stage).knowsBoth, failed("nodes", "connection refused"), later(10), cutOff("pods", Refused, "Unauthorized"),
			cutOff("nodes", Refused, "Unauthorized"), later(30), failed("nodes", "nodes is forbidden"), expires("pods", 100),
			gap("pods", change.Gone, "100", "300"), watched("pods", "300"), mended("pods"), watched("nodes", "120"), later(10),
		}},
		{"the state cannot be saved, and is saved again", []step{times(90, (*stage).unsaved, later(1)), (*stage).saved, (*stage).saved, later(60)}},
		{"a gap, and no sink fails", []step{
			expires("pods", 100), gap("pods", change.Gone, "100", "300"), watched("pods", "300"), mended("pods"), later(60),
		}},
		{"a gap that takes long to compare", []step{
			expires("pods", 100), gap("pods", change.Gone, "100", "300"), watched("pods", "300"), listed("pods", 500, 1500),
			later(150), mended("pods"), later(60),
		}},
		{"a stream is down, and its history is gone when it is up", []step{
			failed("pods", "connection refused"), later(400), expires("pods", 100), gap("pods", change.Gone, "100", "300"),
			watched("pods", "300"), mended("pods"), later(60),
		}},
		{"the history is gone, and the gap waits for the line", []step{
			expires("pods", 100), later(40), gap("pods", change.Gone, "100", "300"), watched("pods", "300"), mended("pods"),
			later(60),
		}},
		{"the history is said to be gone again and again", []step{times(80, expires("pods", 0), later(1))}},
		{"the history is said to be gone, and no gap follows", []step{expires("pods", 100), later(1), watched("pods", "300"), later(60)}},
		{"the comparison behind a gap fails for a while", []step{
			expires("pods", 100), gap("pods", change.Gone, "100", "300"), watched("pods", "300"),
			failed("pods", "read a snapshot of pods: forbidden"), later(30), watched("pods", "300"), mended("pods"), later(60),
		}},
		{"a gap interrupts the comparison behind a gap", []step{
			gap("pods", change.Gone, "100", "300"), later(1), expires("pods", 350), gap("pods", change.Gone, "350", "500"),
			mended("pods"), later(60),
		}},
		{"the process ends within a gap", []step{gap("pods", change.Gone, "100", "300"), later(1), (*stage).TellAll, gap("nodes", change.Stale, "7", "8")}},
		{"a resource is not served for a while, and has a gap", []step{
			gap("pods", change.Gone, "100", "300"), later(1), unserved("pods"), later(30), again("pods"), watched("pods", "300"),
			mended("pods"), later(60),
		}},
		{"gaps of several resources at once, of which one lasts: a line for each", []step{
			gap("pods", change.Gone, "100", "300"), mended("pods"), later(2), gap("nodes", change.Gone, "70", "310"),
			mended("nodes"), gap("secrets", change.Gone, "80", "320"), later(20), mended("secrets"), later(60),
		}},
		{"a sink lost its log", []step{
			gap("pods", change.Lost, "100", "300", "bus"), later(1), listed("pods", 45, 0),
			reconciled("pods", change.Counts{Synced: 40, Replaced: 5, Deleted: 3}), later(60),
		}},
		{"a snapshot that somebody asked for", []step{
			gap("pods", change.Requested, "100", "300", "bus"), later(100), reconciled("pods", change.Counts{}),
		}},
		{"the start: one line for all that is watched, and one for each that is compared", []step{
			(*stage).starts, gap("pods", change.Initial, "", "300"), gap("nodes", change.Initial, "", "310"), watched("pods", "300"),
			listed("pods", 40, 0), later(1), watched("nodes", "310"), reconciled("pods", change.Counts{Replaced: 40}),
			reconciled("nodes", change.Counts{Replaced: 2}), later(60),
		}},
		{"one of the streams of the start is forbidden", []step{
			(*stage).starts, failed("nodes", "forbidden"), watched("pods", "300"), later(60), watched("nodes", "310"),
		}},
		{"a sink is away and holds nobody up, twice", []step{times(2, away(180), written(), queued(0), later(60))}},
		{"a sink is away and holds two streams up, which have gaps", []step{
			holdsUp(0), queued(0), expires("pods", 100), later(1), gap("pods", change.Gone, "100", "300"),
			gap("nodes", change.Gone, "70", "300"), watched("pods", "300"), watched("nodes", "300"), later(1), mended("pods"),
			mended("nodes"), later(90),
		}},
		{"a sink is away and holds two streams up, and does so for long when it is back", []step{
			holdsUp(0), later(1), (*stage).heldUp, later(90),
		}},
		{"a sink is back and stops for good", []step{holdsUp(0), later(2), stops("the password is wrong"), later(90)}},
		{"a sink is back for a moment only", []step{holdsUp(0), later(2), times(6, retried(), later(1))}},
		{"a sink asks again at every election", []step{times(100, (*stage).elects, later(1), written())}},
		{"a sink that another writer has is not tried again", []step{fenced(), later(700)}},
		{"a sink stays stopped when it is tried again", []step{
			stops("the password is wrong"), later(1), stops("the password is wrong"), later(60), stops("the password is wrong"), later(120),
			stops("the certificate is old"), later(10), opened(), stops("the certificate is old"),
		}},
		{"records are counted by their resource", []step{
			func(s *stage) { course(s.Telemetry, records(9)) },
			asked("/metrics", "_records_total{", "source_bytes_total{", "delivery_seconds_count{"),
		}},
		{"states are metrics", []step{
			failed("pods", "forbidden"), stops("no rights"), asked("/metrics", "_state{", "sink_stopped{", "build_info{"),
		}},
		{"dead letters are counted and told, and a full disk once", []step{
			func(s *stage) {
				s.CountLetters = func(name string) (int, error) {
					return 3, map[string]error{"lake": errors.New("no directory")}[name]
				}
				rec := named("huge")
				for range 2 {
					s.NotKept("bus", errors.New("disk full"))
				}
				shownSink("bus")(s)
				for range 2 {
					s.Dropped("bus")
				}
				s.Trimmed("bus", rec)
				s.Replayed("bus", rec, nil)
				s.Replayed("bus", rec, errors.New("superseded"))
			},
			asked("/metrics", "dead_letters{", "dead_letters_dropped_total{", "dead_letters_replayed_total{", "sink_trimmed_total{", "sink_retries_total{"),
		}},
		{"gaps are shown and counted, each for its reason", []step{
			gap("pods", change.Gone, "100", "300"), shownStream(), gap("pods", change.Stale, "100", "300"), shownStream(),
			gap("pods", change.Epoch, "100", "300"), shownStream(), shown(func(s Status) any { return s.ClusterUID }), shownSink("lake"),
			asked("/metrics", "source_gaps_total{"),
		}},
		{"comparisons for other reasons are no gaps", []step{
			gap("pods", change.Initial, "100", "300"), gap("pods", change.Resync, "100", "300"), gap("pods", change.Requested, "100", "300"),
			shownStream(), shown(func(s Status) any { return s.ClusterUID }), asked("/metrics", "source_gaps_total{"), later(60),
		}},
		{"a gap of one sink is shown with it, and so is a rejected record", []step{
			gap("pods", change.Lost, "100", "300", "lake"),
			func(s *stage) { s.Rejected("bus", named("huge"), "too_large", errors.New("above the limit")) },
			(*stage).TellAll, shownSink("lake"), shownSink("bus"), asked("/metrics", "source_gaps_total{", "sink_rejected_total{"),
		}},
		{"what cannot be read is a gap of its stream where it is nobody's; that of an object is its sinks'", []step{
			func(s *stage) { s.Unreadable(named("odd"), errors.New("no object")) }, shownStream(),
			func(s *stage) {
				rec := named("")
				rec.Op, rec.Snapshot = change.Gap, &change.Snapshot{Reason: change.Policy, From: "6"}
				s.Unreadable(rec, errors.New("no object"))
			},
			shownStream(), asked("/metrics", "source_gaps_total{"),
		}},
		{"drift is told with its first objects, and counted; the next comparison has none", []step{
			gap("pods", change.Resync, "100", "300", "lake"),
			func(s *stage) {
				for i := range 100 {
					s.Corrected(pods(), change.Correction{
						Op: change.Op(change.Replaced), Key: change.Key{Name: fmt.Sprint(i)}, UID: "u", Version: "9", Had: "u", HadVersion: "7", Reason: change.Resync,
					})
				}
			},
			reconciled("pods", change.Counts{}), asked("/metrics", "corrections_total{", "snapshots_total{"),
			gap("pods", change.Resync, "300", "400", "lake"), reconciled("pods", change.Counts{}), later(60),
		}},
		{"who holds a stream up is named at once, once, and again when it does so again, and no health check fails", []step{
			paced("pods", 10, 60), holds(10), shownHistory(), holds(60), shownHistory(), holds(60), (*stage).frees, shownHistory(), holds(60),
			asked("/metrics", "history_seconds{", "history_left_seconds{"), asked("/healthz"),
		}},
		{"a sink that fails is told once to hold streams up, though the pace rises and falls; and again when it has taken records", []step{
			paced("pods", 10, 60), retried(), holds(60), holds(0), holds(60), written(), holds(0), holds(60),
		}},
		{"a resource that cannot be read does not become a quiet one", []step{
			paced("pods", 10, 0), shownHistory(), failed("pods", "connection refused"), sleeps(300), holds(0), shownHistory(),
		}},
		{"the history of what cannot be read runs out", []step{
			watched("pods", "100"), sleeps(600), shownHistory(), failed("pods", "connection refused"), sleeps(100), cutOff("pods", Refused, "Unauthorized"),
			times(4, shownHistory(), sleeps(100)), holds(60), watched("pods", "100"), shownHistory(),
		}},
		{"no series of a stream comes back that is over: its last records are written then", []step{
			left("pods"), written(), asked("/metrics", "sink_records_total{"), func(s *stage) { s.Joined(pods()) }, written(),
			asked("/metrics", "sink_records_total{"),
		}},
		{"a stream is in its snapshot until all sinks are compared, also where an earlier life has begun that", []step{
			func(s *stage) {
				views := &listener.Views{Streams: map[string][]listener.View{"pods": {{Sink: "bus", Comparing: change.Initial}, {Sink: "lake"}}}}
				s.Follow(func() *listener.Views { return views })
				shownState()(s)
				views.Streams["pods"][0].Comparing = ""
				shownState()(s)
			},
		}},
		{"a snapshot is shown in percent of what the server says", []step{
			listed("pods", 1, 1), shownSnapshot(), gap("pods", change.Requested, "", "9", "lake"), listed("pods", 0, -1), shownSnapshot(),
			listed("pods", 500, 999), shownSnapshot(), listed("pods", 998, 1), shownSnapshot(), listed("pods", 1, 0), shownSnapshot(),
			reconciled("pods", change.Counts{}), shownStream(),
		}},
		{"or of what the sink has, which says nothing of a part, and is never all of it", []step{
			counted(10), gap("pods", change.Resync, "", "9", "bus"), times(3, listed("pods", 5, -1), shownSnapshot()), reconciled("pods", change.Counts{}),
			func(s *stage) {
				of := snapshot(change.Requested, "bus")
				of.Limits.Selector = "app=web"
				s.Comparing(pods(), of)
				times(1, listed("pods", 5, -1), shownSnapshot())(s)
				s.Compared(pods(), of)
			},
			shownStream(),
		}},
		{"misshapen objects come one after the other", []step{many(100*time.Millisecond, (*stage).misshapen)}},
		{"misshapen objects come at once", []step{many(0, (*stage).misshapen), asked("/metrics", "source_misshapen_total{")}},
		{"records are trimmed", []step{many(0, func(s *stage, rec *change.Record) { s.Trimmed("bus", rec) })}},
		{"records are rejected", []step{many(0, func(s *stage, rec *change.Record) { s.Rejected("bus", rec, "too_large", errors.New("large")) })}},
		{"somebody asks what is refused, for ten minutes", []step{
			times(600, func(s *stage) { s.Asked("bus", "snapshot", errors.New(`no stream of "x"`)) }, later(1)), shownSink("bus"),
			asked("/metrics", "signals_total{"),
		}},
		{"nobody can ask for a while", []step{
			hears(nil), times(3, hears(errors.New("away"))), shownSink("bus"), asked("/metrics", "signals_up{"), hears(nil), shownSink("bus"),
		}},
		{"events of the audit webhook are missing", []step{
			func(s *stage) { s.AuditExpected([]string{"proven"}, []string{"busy"}) }, asked("/metrics", "audit_events_total{", "audit_refused_total{"),
			times(3, func(s *stage) { s.AuditMissing(fmt.Sprint(s.count)); s.count++ }), asked("/metrics", "audit_events_total{"), later(60),
		}},
		{"the audit webhook refuses requests", []step{
			times(3, func(s *stage) { s.AuditRefused("busy", errors.New("full")) }), asked("/metrics", "audit_refused_total{"), later(60),
		}},
		{"a long snapshot is a line now and then", []step{
			gap("pods", change.Initial, "", "300"), times(25, later(1), listed("pods", 500, 100)), again("pods"), later(9), listed("pods", 1, 1),
			later(1), listed("pods", 6, -1),
		}},
		{"a sink fails a thousand times, and is opened each time", []step{
			queued(7), times(1000, sinkFailed("no room"), opened()), sinkFailed("no rights"), opened(), written(), sinkFailed("no rights"),
		}},
		{"a stream is watched behind the snapshot for all sinks", []step{
			gap("pods", change.Initial, "", "7"), shownState(), watched("pods", "7"), shownState(), failed("pods", "boom"), shownState(),
			watched("pods", "8"), shownState(), mended("pods"), shownState(), gap("pods", change.Requested, "", "9", "lake"), shownState(),
			gap("pods", change.Epoch, "", "9"), shownState(), mended("pods"), shownState(), watched("pods", "9"), shownState(),
		}},
		{"readiness is told with each check", []step{
			func(s *stage) { s.Opened("lake", 0) }, ready(), times(1, sinkFailed("no room"), ready()), written(), failed("nodes", "forbidden"), ready(),
			stops("no rights"), ready(), opened(), ready(), cutOff("pods", Refused, "Unauthorized"), ready(), failed("pods", "connection refused"), ready(),
			cutOff("pods", Refused, "Unauthorized"), ready(), watched("pods", "100"), standsBy(Standby{}), ready(),
			standsBy(Standby{Trouble: Trouble{LastError: "no route to host"}}), ready(), standsBy(Standby{Whole: true}), ready(), (*stage).unsaved, ready(),
		}},
		{"a sink that was never open is not ready, and neither is a stream that has not started", []step{(*stage).starts, ready()}},
		{"streams are silent, and a bookmark is a sign of life", []step{
			later(int(silence/time.Second) + 1), asked("/healthz"), func(s *stage) { s.Received(named("web")) }, asked("/healthz"),
			func(s *stage) {
				nodes := streamOf("nodes")
				s.Received(&change.Record{Stream: &nodes, Op: change.Bookmark})
			}, asked("/healthz"),
		}},
		{"a routine answer is no failure, unless it lasts", []step{
			times(4, routine("bus"), routine("lake"), later(1)), shownSink("bus"), shownSink("lake"),
			times(26, routine("bus"), routine("lake"), later(1)), shownSink("bus"), shownSink("lake"),
		}},
		{"schemas are registered, behind, waited for, refused and lost", []step{
			func(s *stage) {
				at, why := sink.Schema{Subject: "k8s.pods-value", ID: 7}, errors.New("no answer")
				s.SchemaWaits("bus", "pods", why, false)
				s.SchemaWaits("bus", "nodes", why, false)
				s.SchemaKnown("bus", "pods", at, nil)
				s.SchemaKnown("bus", "pods", at, why)
				s.SchemaKnown("bus", "pods", at, why)
				s.SchemaWaits("bus", "nodes", errors.New("incompatible"), true)
				s.SchemaReplaced("bus", "pods", at, time.Now())
				shownSink("bus")(s)
				asked("/metrics", "schemas{", "schemas_replaced_total{")(s)
				s.SchemaForgotten("bus", "nodes")
				shownSink("bus")(s)
			},
		}},
	}
}
