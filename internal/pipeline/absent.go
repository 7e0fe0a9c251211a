package pipeline

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/line"
	"github.com/kubecdc/kubecdc/internal/redo"
)

// A sink that is stopped and would hold up others leaves the line: durably, it is absent from all its streams
// (checkpoint.Absence), and nobody waits for it any more. So is one that is not configured. One that does not take a
// stream any more is absent from that stream alone. Open again, it is asked
// about each stream at a moment of the stream's own, when everything before is saved: the gap of its full snapshot is
// what it is given first, and from there on it misses nothing.

// heldFor is the age of the oldest record at which a sink that is stopped leaves, though there is room: positions
// must move on well before the API server's history ends, after five minutes by default.
const heldFor = 2 * time.Minute

// errLeft is that the listener's sink has left the line.
var errLeft = errors.New("the sink has left the line")

// burdens makes the sink leave if it is stopped and cannot be spooled for, though somebody waits; the caller holds mu.
func (l *listener) burdens() {
	if l.halted && !l.away && !l.leaving && !l.backlog.IsFinished() && !l.backlog.MaySpill() {
		l.leaving = true
		l.seat.Wake()
	}
}

// burdensByAge is burdens for whoever does not wait yet.
func (l *listener) burdensByAge() {
	l.use(func(b *fifo.Backlog) {
		if oldest := b.OldestUnsaved(); !oldest.IsZero() && time.Since(oldest) > heldFor {
			b.StartSpill()
			l.burdens()
		}
	})
}

// isAway says whether the sink is not in line.
func (l *listener) isAway() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.away
}

// isLeaving says whether the sink is to leave.
func (l *listener) isLeaving() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leaving && !l.away
}

// leaveLine makes a stopped sink absent: first in the state, then in the line. The committer calls it between two
// commits, so that no record and no mark of the sink is on its way to the state.
func (r *run) leaveLine(l *listener) error {
	r.saving.Lock()
	defer r.saving.Unlock()
	r.oweMu.Lock()
	defer r.oweMu.Unlock()
	batch, err := r.absenceOf(l)
	if err == nil {
		err = r.Store.Commit(batch)
	}
	if err != nil {
		return fmt.Errorf("note that sink %s leaves: %w", l.Name, err)
	}
	var streams []string
	for _, s := range r.sources() {
		if l.takes(&s.Stream) {
			streams = append(streams, s.Stream.String())
		}
	}
	l.seat.Leave(l.savedMark(), streams)
	for _, rec := range l.dismiss() {
		rec.Replay.Done(fmt.Errorf("sink %s is stopped: %w", l.Name, errLeft))
	}
	r.Observer.Absent(l.Name)
	return nil
}

// absenceOf is what the state is to know: every snapshot that the sink was owed begins anew, since the present ones
// go past it.
func (r *run) absenceOf(l *listener) (checkpoint.Batch, error) {
	var batch checkpoint.Batch
	debts, err := r.Store.Debts()
	if err != nil {
		return batch, err
	}
	for _, d := range debts {
		if d.Sink == l.Name && d.Reason != change.Absent {
			batch.Debts = append(batch.Debts, d)
		}
	}
	for _, s := range r.sources() {
		if l.takes(&s.Stream) {
			leave(&batch, checkpoint.Subscription{Sink: l.Name, Stream: s.Stream.String()})
		}
	}
	return batch, nil
}

// leave makes the batch note that the sink misses the stream. A source may still hold the return from an earlier
// absence, which was told. So the generation of this one is another.
func leave(batch *checkpoint.Batch, subscription checkpoint.Subscription) {
	since, owed := time.Now(), debt(subscription.Sink, subscription.Stream, change.Absent)
	owed.Generation = uint64(since.UnixNano())
	batch.Absent = append(batch.Absent, checkpoint.Absence{Subscription: subscription, Since: since})
	batch.Debts = append(batch.Debts, owed)
}

// dismiss empties the queue, and returns the letters that waited in it. What is on disk stays there.
func (l *listener) dismiss() (replays []*change.Record) {
	l.use(func(b *fifo.Backlog) {
		replays = slices.DeleteFunc(b.Dismiss(), func(rec *change.Record) bool { return rec.Replay == nil })
		l.away, l.leaving = true, false
		close(l.gone)
	})
	return replays
}

// rejoin notes that the sink is open again. Each stream gives it what it has missed.
func (l *listener) rejoin() {
	l.partly.Store(false)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away, l.halted, l.gone = false, false, make(chan struct{})
}

// comesBack makes the listener of a sink that left ready to open it as if in a new process.
func (l *listener) comesBack() error {
	l.recovery.With(func(r *line.Recovery) {
		r.Log.Clear()
		r.Undeleted.Forget()
		r.Missed.Forget()
	})
	l.opened, l.joined, l.retried = false, false, nil
	l.compared.Store(false)
	l.mu.Lock()
	l.cut = nil
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

// returned takes a sink that was absent back: what its log holds behind the mark, and what is on disk for it, is
// noted before the mark moves.
func (r *run) returned(l *listener) error {
	held := l.heldBehind
	l.heldBehind = nil
	if !l.isAway() && !l.partly.Load() {
		return nil
	}
	present := l.recovery.Streams()
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
		if err := r.Store.Commit(checkpoint.Batch{Held: held[:n]}); err != nil {
			return fmt.Errorf("note what the log of sink %s holds: %w", l.Name, err)
		}
		held = held[n:]
	}
	return nil
}

// depart notes in the batch who is absent when the run begins: sinks that are not configured any more, and those that
// were let go or not configured, until they are asked about each stream. It returns the names of the former.
func (r *run) depart(batch *checkpoint.Batch, subscriptions map[checkpoint.Subscription]bool) (kept []string, err error) {
	absences, err := r.Store.Absences()
	if err != nil {
		return nil, err
	}
	marks, err := r.Store.Marks()
	if err != nil {
		return nil, err
	}
	absent := map[checkpoint.Subscription]bool{}
	for _, a := range absences {
		absent[a.Subscription] = true
		if l := r.listenerOf(a.Sink); l != nil && a.Returning {
			batch.Absent = append(batch.Absent, a)
		}
	}
	for _, l := range r.listeners {
		r.departs(l, batch, absent)
	}
	for _, subscription := range slices.Concat(slices.Collect(maps.Keys(subscriptions)), batch.Taken) {
		if mark, found := marks[subscription.Sink]; found && mark != "" && r.listenerOf(subscription.Sink) == nil {
			kept = append(kept, subscription.Sink)
			if !absent[subscription] {
				leave(batch, subscription)
			}
		}
	}
	return kept, nil
}

// listenerOf is the sink's listener, nil where it is not configured.
func (r *run) listenerOf(sinkName string) *listener {
	at := slices.IndexFunc(r.listeners, func(l *listener) bool { return l.Name == sinkName })
	if at < 0 {
		return nil
	}
	return r.listeners[at]
}

// departs makes the line know what the listener's sink misses when the run begins. One that misses everything that it
// had is not in line, and misses the streams that came meanwhile, too.
func (r *run) departs(l *listener, batch *checkpoint.Batch, absent map[checkpoint.Subscription]bool) {
	var missed, others []checkpoint.Subscription
	for _, s := range r.Sources {
		subscription := checkpoint.Subscription{Sink: l.Name, Stream: s.Stream.String()}
		switch {
		case !l.takes(&s.Stream):
		case absent[subscription]:
			missed = append(missed, subscription)
		default:
			others = append(others, subscription)
		}
	}
	l.away = len(missed) > 0 && !slices.ContainsFunc(others, func(s checkpoint.Subscription) bool { return !slices.Contains(batch.Taken, s) })
	l.partly.Store(len(missed) > 0 && !l.away)
	if l.away {
		for _, subscription := range others {
			leave(batch, subscription)
		}
		missed = append(missed, others...)
	}
	for _, subscription := range missed {
		l.seat.Miss(subscription.Stream)
	}
}

// tellAbsent tells the observer who is absent when the run begins.
func (r *run) tellAbsent() {
	for _, l := range r.listeners {
		if l.away {
			r.Observer.Absent(l.Name)
		}
	}
}

// since puts into debts of reason absent from where on the sinks have missed something.
func since(debts []checkpoint.Debt, absences []checkpoint.Absence) {
	for i := range debts {
		d := &debts[i]
		at := slices.IndexFunc(absences, func(a checkpoint.Absence) bool { return a.Sink == d.Sink && a.Stream == d.Stream })
		if d.Reason == change.Absent && at >= 0 {
			d.From, d.Since = absences[at].From.ResourceVersion, absences[at].Since.UnixMilli()
		}
	}
	// With the snapshot of this reason the sink is given the stream again, so that it comes first.
	slices.SortStableFunc(debts, func(a, b checkpoint.Debt) int {
		switch {
		case a.Reason == b.Reason:
			return 0
		case a.Reason == change.Absent:
			return -1
		case b.Reason == change.Absent:
			return 1
		}
		return 0
	})
}
