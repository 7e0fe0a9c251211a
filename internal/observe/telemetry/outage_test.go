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
)

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
			newStage(telemetry).later(300)
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
				newStage(telemetry).later(300)
				told := regexp.MustCompile(`record `+what+`|object=\S+|records=\d+`).FindAllString(log.String(), -1)
				want := []string{"record " + what, "object=web-0", "record " + what, "object=web-999", "records=999"}
				if !slices.Equal(told, want) {
					t.Errorf("told\n%s", &log)
				}
			})
		})
	}
}
