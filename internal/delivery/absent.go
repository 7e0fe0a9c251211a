package delivery

import (
	"errors"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/line"
	"github.com/kubecdc/kubecdc/internal/redo"
)

// ErrLeft is that the listener's sink has left the line.
var ErrLeft = errors.New("the sink has left the line")

// ComeBack makes the listener of a sink that left ready to open it as if in a new process.
func (p *past) ComeBack() error {
	p.Recovery.With(func(r *line.Recovery) {
		r.Log.Clear()
		r.Undeleted.Forget()
		r.Missed = redo.Undeleted{} // also of what the listener was about to tell: what the sink was told its log says
	})
	p.opened, p.retried = false, nil
	p.compared.Store(false)
	p.mu.Lock()
	p.cut = nil
	p.state.comeBack()
	p.mu.Unlock()
	replayBases, err := p.store.ReplayBases(p.Name)
	if err != nil {
		return err
	}
	if len(replayBases) == 0 {
		replayBases = nil
	}
	if err := p.CompareWith(replayBases, false); err != nil {
		return err
	}
	return p.firstSpooled(query(&p.intake, (*fifo.Backlog).Extent))
}

// RecallMissed finds out what a sink that comes back is to be told of the stream, of which everything is saved.
func (p *past) RecallMissed(stream string) error {
	none := false
	p.Recovery.With(func(r *line.Recovery) { none = r.Missed.None() })
	if p.Misses() || p.Seat.Reaches(stream) && none {
		return nil
	}
	entries, err := p.store.Missed(checkpoint.Subscription{Sink: p.Name, Stream: stream}, p.clusterUID)
	if err != nil {
		return fmt.Errorf("read what sink %s has missed of %s: %w", p.Name, stream, err)
	}
	behind, generation := p.IsBehind(), p.Seat.Returns(stream)
	p.Recovery.With(func(r *line.Recovery) {
		if behind {
			r.Missed.Await(stream, entries, generation)
		} else {
			r.Missed.Replace(stream, entries)
		}
	})
	return nil
}

// NoteAfterMark notes what the log holds after the mark and the state must know, before the mark moves.
func (p *past) NoteAfterMark() error { return errors.Join(p.noteHeld(), p.noteUnread()) }

// noteHeld takes a sink that was absent back: what its log holds after the mark, and what is on disk for it, is noted.
func (p *past) noteHeld() error {
	held := p.heldAfter
	p.heldAfter = nil
	if !p.Misses() {
		return nil
	}
	present := p.Recovery.Streams()
	held, err := p.withDisk(held, present)
	if err != nil {
		return err
	}
	for len(held) > 0 {
		n := min(len(held), checkpoint.MaxRecords)
		if err := p.store.Commit(checkpoint.Batch{Held: held[:n]}); err != nil {
			return fmt.Errorf("note what the log of sink %s holds: %w", p.Name, err)
		}
		held = held[n:]
	}
	return p.recallBeforeDisk(present)
}

// recallBeforeDisk finds out what the sink has missed of each stream where records of a return that was cut short are
// on disk. What the log holds, as a killed process' last words, may have come after that return, which does not tell
// of its end: so that is told before what takes its place (tellMissed), and not when the sink returns once more. An
// object of which something is on disk is another matter: its end lies after that.
func (p *past) recallBeforeDisk(streams []*change.Stream) error {
	if !query(&p.intake, (*fifo.Backlog).Behind) {
		return nil
	}
	type object struct{ stream, uid string }
	missed := map[object]change.Entry{}
	for _, s := range streams {
		entries, err := p.store.Missed(checkpoint.Subscription{Sink: p.Name, Stream: s.String()}, p.clusterUID)
		if err != nil {
			return fmt.Errorf("read what sink %s has missed of %s: %w", p.Name, s, err)
		}
		for _, entry := range entries {
			missed[object{s.String(), entry.UID}] = entry
		}
	}
	if len(missed) == 0 {
		return nil
	}
	if err := p.eachSpooled(func(rec *change.Record) { delete(missed, object{rec.Stream.String(), rec.UID}) }); err != nil {
		return err
	}
	p.Recovery.With(func(r *line.Recovery) {
		for of, entry := range missed {
			r.Missed.Recall(of.stream, entry)
		}
	})
	return nil
}

// noteUnread makes the sink absent from the streams of which the log holds more than the state knows, before the mark
// moves on.
func (p *past) noteUnread() error {
	unread := p.unread
	if p.unread = nil; len(unread) == 0 {
		return nil
	}
	if err := p.noteAbsent(unread, &checkpoint.Batch{}); err != nil {
		return fmt.Errorf("note what the log of sink %s holds of streams that are not configured: %w", p.Name, err)
	}
	return nil
}
