package console

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/control"
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
