package console

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/source"
)

// waitingEvery is how often a line tells of a snapshot that is waited for, where there is no terminal.
const waitingEvery = 5 * time.Second

// Waiting shows how far the snapshots are that a command waits for: as a bar on the last line of a terminal, or as a
// line now and then.
type Waiting struct {
	progress *Progress
	told     time.Time
	last     string // that was told
}

// NewWaiting shows on out; draw says that it is a terminal.
func NewWaiting(out io.Writer, draw bool) *Waiting { return &Waiting{progress: NewProgress(out, draw)} }

// Show tells how far they are that are still owed.
func (w *Waiting) Show(owed []control.Owed) {
	if len(owed) == 0 {
		return
	}
	o := furthest(owed)
	text := barOf(o)
	if !w.progress.draw {
		text = o.Stream + " for " + o.Sink + ": " + stateOf(o)
	}
	if others := len(owed) - 1; others > 0 {
		text += fmt.Sprintf(" (+%d)", others)
	}
	w.tell(plain(text))
}

func (w *Waiting) tell(text string) {
	now := w.progress.now()
	if w.told.IsZero() {
		w.told = now // what is delivered at once needs no line
	}
	switch {
	case w.progress.draw:
		w.progress.mu.Lock()
		defer w.progress.mu.Unlock()
		w.progress.show(text)
	case text != w.last && now.Sub(w.told) >= waitingEvery:
		w.told, w.last = now, text
		fmt.Fprintln(w.progress.out, text)
	}
}

// End leaves the terminal's last line empty.
func (w *Waiting) End() {
	if w.progress.draw {
		w.tell("")
	}
}

// furthest is one that is read, if there is any.
func furthest(owed []control.Owed) *control.Owed {
	for _, state := range []string{control.Reads, control.Delivers} {
		for i := range owed {
			if owed[i].State == state {
				return &owed[i]
			}
		}
	}
	return &owed[0]
}

// stateOf is what it does, and how far it is.
func stateOf(o *control.Owed) string {
	if progress := progressOf(o); progress != "-" {
		return o.State + ", " + progress
	}
	return o.State
}

// Of a line of 79 columns, 8 are left for the number of others.
const (
	barWidth  = 20
	nameWidth = 24
	restWidth = 71
)

// barOf has a bar where it is known how much there is.
func barOf(o *control.Owed) string {
	filled := 0
	if o.Percent != nil {
		filled = min(max(*o.Percent, 0), 100) * barWidth / 100
	}
	bar := "[" + strings.Repeat("#", filled) + strings.Repeat("-", barWidth-filled) + "] "
	return cut(cut(plain(o.Stream), nameWidth)+" "+bar+stateOf(o)+", for "+plain(o.Sink), restWidth)
}

// cut shortens a text to so many characters.
func cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

const (
	// drawEvery is how often the line of a terminal is drawn at most.
	drawEvery = 100 * time.Millisecond
	// tellEvery is how often a log line tells of a snapshot, where there is no terminal.
	tellEvery = 10 * time.Second
)

// Progress shows how far snapshots are: on the last line of a terminal, or as a log line now and then. It is what log
// lines are written through, so that both do not run into each other. It has no goroutine: each page of a list draws.
type Progress struct {
	out    *Screen
	draw   bool // out is a terminal, and nobody else writes there
	now    func() time.Time
	Logger *slog.Logger // set before the first snapshot

	mu      sync.Mutex // guards the following
	running []*listing // in the order of their begin
	drawn   time.Time
	line    string // as it stands on the terminal, "" is none
}

// listing is one snapshot that runs.
type listing struct {
	stream    string
	reason    change.Reason
	listed    int
	remaining int64 // -1 is not known
	began     time.Time
	told      time.Time
}

func NewProgress(out io.Writer, draw bool) *Progress {
	return &Progress{out: On(out), draw: draw, now: time.Now}
}

// Write writes log lines above the progress.
func (p *Progress) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.line == "" {
		return p.out.Write(text)
	}
	line := p.line
	p.show("")
	n, err := p.out.Write(text)
	p.show(line)
	return n, err
}

// Observe adds the progress to what a stream tells.
func (p *Progress) Observe(o source.Observer) source.Observer {
	begun, ended, failed, listed := o.Reconciling, o.Reconciled, o.Failed, o.Listed
	o.Reconciling = func(stream change.Stream, snapshot *change.Snapshot) {
		begun(stream, snapshot)
		p.begin(stream.String(), snapshot.Reason)
	}
	o.Reconciled = func(stream change.Stream, snapshot *change.Snapshot) {
		p.end(stream.String())
		ended(stream, snapshot)
	}
	abandoned := o.Abandoned
	o.Abandoned = func(stream change.Stream, snapshot *change.Snapshot) {
		p.end(stream.String())
		if abandoned != nil {
			abandoned(stream, snapshot)
		}
	}
	o.Failed = func(stream change.Stream, err error) {
		p.end(stream.String())
		failed(stream, err)
	}
	o.Listed = func(stream change.Stream, n int, remaining int64) {
		p.listed(stream.String(), n, remaining)
		if listed != nil {
			listed(stream, n, remaining)
		}
	}
	return o
}

func (p *Progress) begin(stream string, reason change.Reason) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(stream) // one that failed
	now := p.now()
	p.running = append(p.running, &listing{stream: stream, reason: reason, remaining: -1, began: now, told: now})
}

func (p *Progress) end(stream string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(stream)
	if p.draw {
		p.show(p.text())
	}
}

func (p *Progress) remove(stream string) {
	p.running = slices.DeleteFunc(p.running, func(l *listing) bool { return l.stream == stream })
}

// listed is told of another page.
func (p *Progress) listed(stream string, n int, remaining int64) {
	if l := p.count(stream, n, remaining); l != nil { // outside of mu: the logger writes through Write
		p.Logger.Info("snapshot goes on", "resource", l.stream, "reason", l.reason, "objects", l.listed, "remaining", l.left(), "perSecond", int(l.rate(p.now())))
	}
}

// count returns a copy of the listing that is to be told of, nil for none.
func (p *Progress) count(stream string, n int, remaining int64) *listing {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.running, func(l *listing) bool { return l.stream == stream })
	if i < 0 {
		return nil
	}
	l, now := p.running[i], p.now()
	l.listed += n
	l.remaining = remaining
	switch {
	case p.draw && now.Sub(p.drawn) >= drawEvery:
		p.drawn = now
		p.show(p.text())
	case !p.draw && now.Sub(l.told) >= tellEvery:
		l.told = now
		told := *l
		return &told
	}
	return nil
}

// show replaces the terminal's last line; the caller holds mu.
func (p *Progress) show(line string) {
	if line == p.line {
		return
	}
	p.line = line
	if p.out.act("\r\x1b[K") == nil { // to a terminal that is gone, nothing needs to be shown
		fmt.Fprint(p.out, line)
	}
}

// text is the line: the snapshot that runs for the longest time, and how many others do. It fits 80 columns.
func (p *Progress) text() string {
	if len(p.running) == 0 {
		return ""
	}
	l := p.running[0]
	text := "snapshot of " + l.stream + ": " + l.String(p.now())
	if others := len(p.running) - 1; others > 0 {
		text += fmt.Sprintf(" (+%d)", others)
	}
	if runes := []rune(text); len(runes) > 79 {
		text = string(runes[:78]) + "…"
	}
	return text
}

func (l *listing) rate(now time.Time) float64 {
	took := now.Sub(l.began).Seconds()
	if took <= 0 {
		return 0
	}
	return float64(l.listed) / took
}

func (l *listing) left() string {
	if l.remaining < 0 {
		return "unknown"
	}
	return fmt.Sprint(l.remaining)
}

func (l *listing) String(now time.Time) string {
	rate := l.rate(now)
	if l.remaining < 0 {
		return fmt.Sprintf("%d objects, %.0f/s", l.listed, rate)
	}
	total := int64(l.listed) + l.remaining
	text := fmt.Sprintf("%d of %d objects, %d%%, %.0f/s", l.listed, total, int64(l.listed)*100/max(total, 1), rate)
	if rate > 0 && l.remaining > 0 {
		text += ", " + time.Duration(float64(l.remaining)/rate*float64(time.Second)).Round(time.Second).String() + " left"
	}
	return strings.TrimSpace(text)
}
