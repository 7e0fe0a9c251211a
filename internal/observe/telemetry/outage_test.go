package telemetry

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// TestAnOutageIsAStory: a broker of three is away for three minutes, twice, and the sink asks all of them every two
// seconds. The log says when it began, once a minute that it lasts, what waits, when it is over and what was lost.
func TestAnOutageIsAStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		telemetry := quiet()
		telemetry.Logger = slog.New(slog.NewTextHandler(&log, nil))
		telemetry.Opened("bus", 0)
		for outage := range 2 {
			began := time.Now()
			for i := 0; time.Since(began) < 3*time.Minute; i++ {
				telemetry.Queued("bus", fifo.Levels{Records: 10 * i, Bytes: 1000 * i, SpoolRecords: 5, SpoolBytes: 500})
				telemetry.Retried("bus", "unreachable", fmt.Errorf("broker %d does not answer", i%3))
				time.Sleep(2 * time.Second)
			}
			if outage == 1 {
				telemetry.states.sinks["bus"].Gaps++
			}
			telemetry.Written("bus", records(1), time.Millisecond)
			time.Sleep(time.Hour)
		}
		text := log.String()
		if lines := strings.Count(text, "\n"); lines != 9 {
			t.Errorf("%d lines, want the opening and twice a beginning, two minutes and an end:\n%s", lines, text)
		}
		for _, want := range []string{
			`msg="sink retries" sink=bus reason=unreachable error="broker 0 does not answer" waiting=35 waitingBytes=3000 spoolBytes=500 since=2000-01-01T00:00:00Z`,
			`msg="sink still fails" sink=bus reason=unreachable error="broker 0 does not answer" since=2000-01-01T00:00:00Z for=1m6s attempts=34 streamsHeldUp=0 waiting=335`,
			`msg="sink accepts records again" sink=bus for=3m0s attempts=90 lost=nothing waiting=895`,
			`msg="sink accepts records again" sink=bus for=3m0s attempts=90 lost="intermediate states: the line of the gap tells which" waiting=895`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("not told: %s\n%s", want, text)
			}
		}
	})
}

// election is an answer that a broker at work gives.
type election struct{}

func (election) Error() string { return "the leader has changed" }
func (election) Routine() bool { return true }

// TestARoutineAnswerIsNoFailure, not before the first opening either, unless it lasts: then it is told once.
func TestARoutineAnswerIsNoFailure(t *testing.T) {
	for _, opened := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			telemetry := quiet()
			if opened {
				telemetry.Opened("bus", 0)
			}
			before := telemetry.Status().Sinks["bus"].State
			telemetry.Logger = slog.New(slog.NewTextHandler(&log, nil))
			err := fmt.Errorf("open: %w", election{})
			for range 4 {
				telemetry.Retried("bus", "coordinator_not_available", err)
				time.Sleep(time.Second)
			}
			if shown := telemetry.Status().Sinks["bus"]; log.Len() > 0 || shown.State != before || shown.LastError != "" {
				t.Errorf("after four seconds it is told that the sink fails: %+v\n%s", shown, &log)
			}
			for range 26 {
				telemetry.Retried("bus", "coordinator_not_available", err)
				time.Sleep(time.Second)
			}
			if shown := telemetry.Status().Sinks["bus"]; strings.Count(log.String(), "\n") != 1 || shown.State != failing || shown.LastError == "" {
				t.Errorf("after half a minute it is not told once: %+v\n%s", shown, &log)
			}
		})
	}
}

// TestRoutineRetriesAreCountedOnly: an election takes a moment.
func TestRoutineRetriesAreCountedOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		telemetry := quiet()
		telemetry.Opened("bus", 0)
		telemetry.Logger = slog.New(slog.NewTextHandler(&log, nil))
		for range 100 {
			telemetry.Retried("bus", "not_leader", errors.New("the leader has changed"))
			time.Sleep(time.Second)
			telemetry.Written("bus", records(1), time.Millisecond)
		}
		if log.Len() > 0 {
			t.Errorf("told:\n%s", &log)
		}
	})
}

// TestMisshapenObjectsAreCounted, and one of them is named: also those that come at once, and those that nothing
// follows.
func TestMisshapenObjectsAreCounted(t *testing.T) {
	for _, c := range []struct {
		what    string
		pause   time.Duration // between two of a thousand
		objects []int
	}{
		{"one after the other", 100 * time.Millisecond, []int{1, 600, 399}},
		{"at once", 0, []int{1, 999}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			telemetry, stream := quiet(), streams()[0]
			telemetry.Logger = slog.New(slog.NewTextHandler(&log, nil))
			for i := range 1000 {
				telemetry.ShapeFailed(&change.Record{Stream: &stream, Key: change.Key{Name: fmt.Sprint("web-", i)}}, errors.New("no such key: x"))
				time.Sleep(c.pause)
			}
			stage{telemetry}.later(300)
			want, web := "", 0
			for _, n := range c.objects {
				web += n
				want += fmt.Sprintf("objects=%d resource=pods object=web-%d ", n, web-1)
			}
			told := regexp.MustCompile(`objects=\d+ resource=pods object=\S+ `).FindAllString(log.String(), -1)
			if got := strings.Join(told, ""); got != want || strings.Count(log.String(), "\n") != len(c.objects) {
				t.Errorf("%s: told\n%s", c.what, &log)
			}
		})
	}
}

// TestTrimmedAndRejectedRecordsAreCounted as misshapen objects are.
func TestTrimmedAndRejectedRecordsAreCounted(t *testing.T) {
	for what, tell := range map[string]func(*Telemetry, *change.Record){
		"trimmed":  func(t *Telemetry, rec *change.Record) { t.Trimmed("bus", rec) },
		"rejected": func(t *Telemetry, rec *change.Record) { t.Rejected("bus", rec, "too_large", errors.New("large")) },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				telemetry, stream := quiet(), streams()[0]
				telemetry.Logger = slog.New(slog.NewTextHandler(&log, nil))
				for i := range 1000 {
					tell(telemetry, &change.Record{Stream: &stream, Key: change.Key{Name: fmt.Sprint("web-", i)}})
				}
				stage{telemetry}.later(300)
				told := regexp.MustCompile(`record `+what+`|object=\S+|records=\d+`).FindAllString(log.String(), -1)
				want := []string{"record " + what, "object=web-0", "record " + what, "object=web-999", "records=999"}
				if !slices.Equal(told, want) {
					t.Errorf("told\n%s", &log)
				}
			})
		})
	}
}

// TestASinkThatIsBehindIsNamed once, though it does not fail, and once when it has caught up. So is a spool that fills.
func TestASinkThatIsBehindIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		expectLog(t, func(s stage) {
			s.Spools = map[string]int64{"bus": 1000}
			s.Opened("bus", 0)
			began := time.Now()
			for i := range 300 {
				s.Queued("bus", fifo.Levels{Records: 3, Bytes: 30, SpoolRecords: int64(i), SpoolBytes: int64(2 * i), Oldest: began})
				s.Written("bus", records(1), time.Millisecond)
				s.later(1)
			}
			s.Queued("bus", fifo.Levels{})
			s.later(10)
			s.Queued("bus", fifo.Levels{SpoolRecords: 5, SpoolBytes: 800})
			s.later(10)
		}, `
00:00:00 INFO sink open sink=bus foundAfterMark=0
00:02:00 WARN sink is behind: records come faster than it takes them sink=bus since=2000-01-01T00:00:00Z waiting=122 waitingBytes=30 spoolBytes=238
00:04:11 WARN spool fills; when it is full, the sink holds its streams up: bring the sink back, or raise queue.spool sink=bus spoolBytes=500 limit=1000 waiting=253
00:05:01 INFO sink has caught up sink=bus for=5m1s
00:05:11 WARN spool fills; when it is full, the sink holds its streams up: bring the sink back, or raise queue.spool sink=bus spoolBytes=800 limit=1000 waiting=5`)
	})
}

// TestASinkThatAnOldRecordComesToIsNotBehind: another sink has held it up, and it is soon written.
func TestASinkThatAnOldRecordComesToIsNotBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		expectLog(t, func(s stage) {
			for range 5 {
				s.Queued("bus", fifo.Levels{Records: 1, Oldest: time.Now().Add(-time.Hour)})
				s.later(30)
				s.Queued("bus", fifo.Levels{})
				s.later(1)
			}
		}, "")
	})
}

// TestASinkThatWasAwayIsNotBehindAtOnce: what waited is delivered first.
func TestASinkThatWasAwayIsNotBehindAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		expectLog(t, func(s stage) {
			s.Opened("bus", 0)
			isAway(s, 100)
			s.Written("bus", records(1), time.Millisecond)
			s.later(150)
			s.Queued("bus", fifo.Levels{})
			s.later(60)
		}, `
00:00:00 INFO sink open sink=bus foundAfterMark=0
00:00:05 WARN sink retries sink=bus reason=unreachable error="nobody listens" waiting=50 waitingBytes=5000 spoolBytes=0 since=2000-01-01T00:00:00Z
00:01:05 WARN sink still fails sink=bus reason=unreachable error="nobody listens" since=2000-01-01T00:00:00Z for=1m5s attempts=66 streamsHeldUp=0 waiting=650 waitingBytes=65000 spoolBytes=0
00:01:40 INFO sink accepts records again sink=bus for=1m40s attempts=100 lost=nothing waiting=990 waitingBytes=99000 spoolBytes=0`)
	})
}

// TestASinkThatStaysStoppedIsNamedAgain when it was tried again.
func TestASinkThatStaysStoppedIsNamedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		expectLog(t, func(s stage) {
			for _, pause := range []int{1, 60, 120} {
				s.Stopped("bus", errors.New("the password is wrong"))
				s.later(pause)
			}
			s.Stopped("bus", errors.New("the certificate is old"))
			s.later(10)
			s.Opened("bus", 0)
			s.Stopped("bus", errors.New("the certificate is old"))
		}, `
00:00:00 ERROR sink stopped, the others continue; fix the cause: the sink is retried within ten minutes, and at the next start sink=bus error="the password is wrong"
00:01:01 WARN sink still fails sink=bus error="the password is wrong" since=2000-01-01T00:00:00Z for=1m1s attempts=3 streamsHeldUp=0 waiting=0 waitingBytes=0 spoolBytes=0
00:03:01 ERROR sink stopped, the others continue; fix the cause: the sink is retried within ten minutes, and at the next start sink=bus error="the certificate is old"
00:03:11 INFO sink accepts records again sink=bus for=3m11s attempts=4 lost=nothing waiting=0 waitingBytes=0 spoolBytes=0
00:03:11 ERROR sink stopped, the others continue; fix the cause: the sink is retried within ten minutes, and at the next start sink=bus error="the certificate is old"`)
	})
}
