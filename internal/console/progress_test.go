package console

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// clocked is a progress whose clock the test moves.
func clocked(draw bool) (*Progress, *bytes.Buffer, *time.Time) {
	out, now := new(bytes.Buffer), time.UnixMilli(0)
	p := NewProgress(out, draw)
	p.now = func() time.Time { return now }
	p.Logger = slog.New(slog.NewTextHandler(p, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	return p, out, &now
}

// shownBy is what a terminal shows, line by line.
func shownBy(text string) []string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		parts := strings.Split(line, "\r\x1b[K")
		lines = append(lines, parts[len(parts)-1])
	}
	return lines
}

func TestProgressIsTheTerminalsLastLine(t *testing.T) {
	p, out, now := clocked(true)
	p.begin("pods", change.Initial)
	*now = now.Add(time.Second)
	p.listed("pods", 500, 4500)
	p.Logger.Info("something else")
	p.begin("nodes", change.Initial)
	*now = now.Add(time.Second)
	p.listed("pods", 500, 4000)
	want := []string{`level=INFO msg="something else"`, "snapshot of pods: 1000 of 5000 objects, 20%, 500/s, 8s left (+1)"}
	if got := shownBy(out.String()); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("the terminal shows %q\nwant %q", got, want)
	}
	p.end("pods")
	p.listed("nodes", 3, -1)
	p.end("nodes")
	p.Logger.Info("over")
	if got := shownBy(out.String()); got[len(got)-2] != `level=INFO msg=over` || got[len(got)-1] != "" {
		t.Errorf("the terminal shows %q at the end", got)
	}
}

func TestProgressWithoutATerminalIsALogLineNowAndThen(t *testing.T) {
	p, out, now := clocked(false)
	p.begin("pods", change.Initial)
	for range 25 {
		*now = now.Add(time.Second)
		p.listed("pods", 500, 100)
	}
	p.listed("unknown", 1, 1)
	p.end("pods")
	want := "level=INFO msg=\"snapshot goes on\" resource=pods reason=initial objects=5000 remaining=100 perSecond=500\n" +
		"level=INFO msg=\"snapshot goes on\" resource=pods reason=initial objects=10000 remaining=100 perSecond=500\n"
	if out.String() != want {
		t.Errorf("told %q\nwant %q", out.String(), want)
	}
}

func TestProgressOfAListThatStartsAgainCountsAnew(t *testing.T) {
	p, out, now := clocked(true)
	p.begin("pods", change.Initial)
	p.listed("pods", 500, -1)
	p.begin("pods", change.Initial)
	*now = now.Add(time.Second)
	p.listed("pods", 7, -1)
	if got := shownBy(out.String()); got[0] != "snapshot of pods: 7 objects, 7/s" {
		t.Errorf("the terminal shows %q", got)
	}
}
