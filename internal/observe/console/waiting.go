package console

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/control"
)

// waitingEvery is how often a line tells of a snapshot that is waited for.
const waitingEvery = 5 * time.Second

// Waiting tells now and then how far the snapshots are that a command waits for.
type Waiting struct {
	Out io.Writer

	told time.Time
	last string // that was told
}

// Show tells how far they are that are still owed. What is delivered at once needs no line, and no line says the same
// as the one before.
func (w *Waiting) Show(owed []control.Owed) {
	now := time.Now()
	if w.told.IsZero() {
		w.told = now
	}
	if len(owed) == 0 || now.Sub(w.told) < waitingEvery {
		return
	}
	o := &owed[0] // or one that is read, if there is any
	for _, state := range []string{control.Delivers, control.Reads} {
		if i := slices.IndexFunc(owed, func(o control.Owed) bool { return o.State == state }); i >= 0 {
			o = &owed[i]
		}
	}
	text := o.Stream + " for " + o.Sink + ": " + o.State
	if progress := progressOf(o); progress != "-" {
		text += ", " + progress
	}
	if others := len(owed) - 1; others > 0 {
		text += fmt.Sprintf(" (+%d)", others)
	}
	if text = plain(text); text != w.last {
		w.told, w.last = now, text
		fmt.Fprintln(w.Out, text)
	}
}
