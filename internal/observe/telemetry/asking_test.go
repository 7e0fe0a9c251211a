package telemetry

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestI6TheLogNamesOneQuestionAMinute, however many there are, and counts the others.
func TestI6TheLogNamesOneQuestionAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		told := New(Options{Sinks: []string{"bus"}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		for range 600 { // ten minutes
			for range 10 {
				told.Asked("bus", "snapshot", errors.New("no stream of \"x\""))
			}
			time.Sleep(time.Second)
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 10 || !strings.Contains(lines[9], "questions=600") {
			t.Errorf("%d lines, the last one is %s", len(lines), lines[len(lines)-1])
		}
		if asking := told.Status().Sinks["bus"].Asking; asking.Refused != 6000 || asking.Followed != 0 {
			t.Errorf("the status has %+v", asking)
		}
	})
}

// TestTheLogHearsOnceThatNobodyCanAsk, and once that somebody can again.
func TestTheLogHearsOnceThatNobodyCanAsk(t *testing.T) {
	var log bytes.Buffer
	told := New(Options{Sinks: []string{"bus"}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	told.Hears("bus", nil)
	for range 3 {
		told.Hears("bus", errors.New("away"))
	}
	if asking := told.Status().Sinks["bus"].Asking; asking.LastError != "away" || asking.LastErrorTime.IsZero() {
		t.Errorf("the status has %+v", asking)
	}
	told.Hears("bus", nil)
	if lines := strings.Count(log.String(), "\n"); lines != 2 {
		t.Errorf("%d lines:\n%s", lines, log.String())
	}
	if asking := told.Status().Sinks["bus"].Asking; asking.LastError != "" {
		t.Errorf("the status has %+v", asking)
	}
}
