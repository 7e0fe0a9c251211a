package delivery

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/line"
	"github.com/kubecdc/kubecdc/internal/redo"
)

// heldFor is the age of the oldest record at which a sink that is stopped leaves, though there is room: positions
// must move on well before the API server's history ends, after five minutes by default.
const heldFor = 2 * time.Minute

// ErrLeft is that the listener's sink has left the line.
var ErrLeft = errors.New("the sink has left the line")

// burdensByAge is burdens for whoever does not wait yet.
func (l *Listener) burdensByAge() {
	l.use(func(b *fifo.Backlog) {
		if oldest := b.OldestUnsaved(); !oldest.IsZero() && time.Since(oldest) > heldFor {
			b.StartSpill()
			l.burdens()
		}
	})
}

// Dismiss empties the queue, and returns the letters that waited in it. What is on disk stays there.
func (l *Listener) Dismiss() (replays []*change.Record) {
	l.use(func(b *fifo.Backlog) {
		replays = slices.DeleteFunc(b.Dismiss(), func(rec *change.Record) bool { return rec.Replay == nil })
		l.state.left()
		close(l.gone)
	})
	return replays
}

// Rejoin notes that the sink is open again. Each stream gives it what it has missed.
func (l *Listener) Rejoin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.rejoin()
	l.gone = make(chan struct{})
}

// ComeBack makes the listener of a sink that left ready to open it as if in a new process.
func (l *Listener) ComeBack() error {
	l.Recovery.With(func(r *line.Recovery) {
		r.Log.Clear()
		r.Undeleted.Forget()
		r.Missed.Forget()
	})
	l.opened, l.retried = false, nil
	l.compared.Store(false)
	l.mu.Lock()
	l.cut = nil
	l.state.comeBack()
	l.mu.Unlock()
	replayBases, err := l.store.ReplayBases(l.Name)
	if err != nil {
		return err
	}
	if len(replayBases) == 0 {
		replayBases = nil
	}
	l.reader.ReplayBase = replayBases
	return l.firstSpooled(query(l, (*fifo.Backlog).Extent))
}

// RecallMissed finds out what a sink that comes back is to be told of the stream, of which everything is saved.
func (l *Listener) RecallMissed(stream string) error {
	none := false
	l.Recovery.With(func(r *line.Recovery) { none = r.Missed.None() })
	if l.Misses() || l.Seat.Reaches(stream) && none {
		return nil
	}
	entries, err := l.store.Missed(checkpoint.Subscription{Sink: l.Name, Stream: stream}, l.clusterUID)
	if err != nil {
		return fmt.Errorf("read what sink %s has missed of %s: %w", l.Name, stream, err)
	}
	l.Recovery.With(func(r *line.Recovery) { r.Missed.Replace(stream, entries) })
	return nil
}

// NoteBehind notes what the log holds behind the mark and the state must know, before the mark moves.
func (l *Listener) NoteBehind() error { return errors.Join(l.noteHeld(), l.noteUnread()) }

// noteHeld takes a sink that was absent back: what its log holds behind the mark, and what is on disk for it, is noted.
func (l *Listener) noteHeld() error {
	held := l.heldBehind
	l.heldBehind = nil
	if !l.Misses() {
		return nil
	}
	present := l.Recovery.Streams()
	err := l.eachSpooled(func(rec *change.Record) {
		if rec.Op == change.Deleted && redo.StreamNamed(present, rec.Stream.String()) != nil { // it will be told
			held = append(held, checkpoint.Held{
				Subscription: checkpoint.Subscription{Sink: l.Name, Stream: rec.Stream.String()},
				Entry:        change.Entry{Key: rec.Key, UID: rec.UID, ResourceVersion: rec.ResourceVersion},
			})
		}
	})
	if err != nil {
		return err
	}
	for len(held) > 0 {
		n := min(len(held), checkpoint.MaxRecords)
		if err := l.store.Commit(checkpoint.Batch{Held: held[:n]}); err != nil {
			return fmt.Errorf("note what the log of sink %s holds: %w", l.Name, err)
		}
		held = held[n:]
	}
	return nil
}
