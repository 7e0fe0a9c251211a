package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
)

// PendingSnapshot is a full snapshot of a stream that one sink must be given, whatever happens before it is complete.
type PendingSnapshot struct {
	Stream string
	change.Owed
	Paused bool // it waits until somebody resumes it
}

// pendingSnapshots are the snapshots that are owed.
type pendingSnapshots struct{ *database }

// pendingTables are those of pending snapshots. An earlier version knows nothing of the limited ones, and does not give
// them.
func pendingTables() []byte { return []byte{tablePending, tableLimited} }

// PendingSnapshots are the snapshots that are owed, sorted by sink and stream.
func (d pendingSnapshots) PendingSnapshots() ([]PendingSnapshot, error) {
	return d.that(func(is standing) bool { return is != stopped })
}

// StoppedSnapshots are those that are owed no more and were not given to their end, until they are owed again.
func (d pendingSnapshots) StoppedSnapshots() ([]PendingSnapshot, error) {
	return d.that(func(is standing) bool { return is == stopped })
}

// that are those of which is holds, sorted by sink and stream.
func (d pendingSnapshots) that(holds func(standing) bool) (all []PendingSnapshot, err error) {
	for _, table := range pendingTables() {
		err := d.each([]byte{table}, func(key, value []byte) error {
			pendingSnapshot, is, err := parsePending(key, value)
			if err != nil {
				return d.badValue("a pending snapshot", err)
			}
			if pendingSnapshot.Paused = is == paused; holds(is) {
				all = append(all, pendingSnapshot)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(all, func(a, b PendingSnapshot) int {
		return cmp.Or(cmp.Compare(a.Sink, b.Sink), cmp.Compare(a.Stream, b.Stream))
	})
	return all, nil
}

// pendingBook is the pending snapshots as a batch changes them.
type pendingBook struct {
	db    *database
	to    *rows
	known map[PendingSnapshot]*bookedPending // by what they are the same by: no generation, no cursor
}

// bookedPending is what a batch knows of one pending snapshot.
type bookedPending struct {
	owed    change.Owed
	is      standing
	changed bool
}

// standing is what is known of a pending snapshot.
type standing byte

const (
	nothing standing = iota
	owed
	paused
	stopped // it is owed no more, and its end, where that is under way, must not pay the next one
)

// exists says whether it is owed.
func (d *bookedPending) exists() bool { return d.is == owed || d.is == paused }

// set makes it what it is.
func (d *bookedPending) set(is standing) { d.is, d.changed = is, true }

// find is the saved pending snapshot as the batch has changed it so far.
func (b *pendingBook) find(subscription Subscription, of change.Owed) (*bookedPending, error) {
	id := PendingSnapshot{Stream: subscription.Stream, Owed: change.Owed{Sink: subscription.Sink, Reason: of.Reason, Limits: of.Limits}}
	if known := b.known[id]; known != nil {
		return known, nil
	}
	d := &bookedPending{owed: id.Owed}
	value, found, err := b.db.get(pendingKey(id))
	if err != nil {
		return nil, err
	}
	if found {
		if d.is, err = parsePendingValue(value, &d.owed); err != nil {
			return nil, b.db.badValue("a pending snapshot", err)
		}
	}
	b.known[id] = d
	return d, nil
}

// owe notes a pending snapshot. What is owed already is owed from its beginning: the snapshot that is under way does
// not pay it.
func (b *pendingBook) owe(pendingSnapshot PendingSnapshot) error {
	d, err := b.find(Subscription{pendingSnapshot.Sink, pendingSnapshot.Stream}, pendingSnapshot.Owed)
	if err != nil {
		return err
	}
	if d.is != nothing {
		d.owed.Generation++
	}
	d.owed.Generation = max(d.owed.Generation, pendingSnapshot.Generation)
	d.owed.After = ""
	if d.set(owed); pendingSnapshot.Paused {
		d.set(paused)
	}
	return nil
}

// Steering is what may be done with a snapshot that is owed.
type Steering byte

const (
	Stop   Steering = iota // it is owed no more
	Pause                  // it waits
	Resume                 // it waits no more
)

// steer stops a pending snapshot, or makes it wait or go on, unless it is paid, or owed anew since. A resync, which is
// not owed, is owed from its pause on.
func (b *pendingBook) steer(do Steering, pendingSnapshot PendingSnapshot) error {
	d, err := b.find(Subscription{pendingSnapshot.Sink, pendingSnapshot.Stream}, pendingSnapshot.Owed)
	if err != nil || d.is != nothing && d.owed.Generation != pendingSnapshot.Generation {
		return err
	}
	switch {
	case do == Pause && (d.exists() || d.is == nothing && pendingSnapshot.Reason == change.Resync):
		d.set(paused)
	case do == Resume && d.exists():
		d.set(owed)
	case do == Stop && d.exists():
		d.owed.After = ""
		d.set(stopped)
	}
	return nil
}

// Pay forgets the snapshot, which its sink has, unless it is owed anew since.
func (s *Store) Pay(of PendingSnapshot) error {
	return s.edit(func(w *writer) error {
		d, err := w.pendingSnapshots.find(Subscription{of.Sink, of.Stream}, of.Owed)
		if err != nil || d.owed.Generation != of.Generation || !d.exists() {
			return err
		}
		d.set(nothing)
		w.pendingSnapshots.close()
		return nil
	})
}

// pay notes how far a record of a snapshot for one sink brings its pending snapshot: its end pays it, and an object in
// order moves the cursor.
func (b *pendingBook) pay(rec *change.Record, stream string) error {
	end, object := rec.Op == change.SnapshotEnd, rec.Op == change.Sync && rec.Snapshot.Ordered
	if !end && !object {
		return nil
	}
	d, err := b.find(Subscription{rec.Sink, stream}, change.Owed{Reason: rec.Snapshot.Reason, Limits: rec.Snapshot.Limits})
	if err != nil || d.owed.Generation != rec.Snapshot.Generation {
		return err
	}
	switch {
	case end && d.is != nothing:
		d.set(nothing)
	case object && d.exists():
		d.owed.After, d.changed = rec.Key.String(), true
	}
	return nil
}

// close writes the pending snapshots that the batch changed.
func (b *pendingBook) close() {
	for id, d := range b.known {
		switch {
		case !d.changed:
		case d.is != nothing:
			b.to.value = appendPending(b.to.value[:0], d)
			b.to.set(pendingKey(id), b.to.value)
		default:
			b.to.remove(pendingKey(id))
		}
	}
}

// The value of a pending snapshot that is not just owed ends with one of these. No name does. An earlier version takes
// it for a part of the cursor, and gives the snapshot.
const (
	isPaused  = "\x00paused"
	isStopped = "\x00stopped"
)

// appendPending appends the value of a pending snapshot: generation, cursor, standing. One of the first generation that
// has no more has no value, as pending snapshots had before there were generations.
func appendPending(dst []byte, d *bookedPending) []byte {
	if d.is == owed && d.owed.Generation == 0 && d.owed.After == "" {
		return dst
	}
	dst = append(binary.AppendUvarint(dst, d.owed.Generation), d.owed.After...)
	switch d.is {
	case paused:
		return append(dst, isPaused...)
	case stopped:
		return append(dst, isStopped...)
	}
	return dst
}

// parsePendingValue is the inverse of appendPending.
func parsePendingValue(value []byte, into *change.Owed) (standing, error) {
	if len(value) == 0 {
		return owed, nil
	}
	generation, width := binary.Uvarint(value)
	if width <= 0 {
		return nothing, errValue
	}
	into.Generation = generation
	text := string(value[width:])
	for suffix, is := range map[string]standing{isPaused: paused, isStopped: stopped} {
		if after, found := strings.CutSuffix(text, suffix); found {
			into.After = after
			return is, nil
		}
	}
	into.After = text
	return owed, nil
}

func pendingKey(d PendingSnapshot) []byte {
	if d.Limits == (change.Limits{}) {
		return slices.Concat(sinkPrefix(tablePending, d.Sink), []byte(d.Stream), []byte{terminator}, []byte(d.Reason))
	}
	return slices.Concat(sinkPrefix(tableLimited, d.Sink), []byte(d.Stream), []byte{terminator}, []byte(d.Reason), []byte{terminator}, encodeLimits(d.Limits))
}

// encodeLimits writes them as JSON, in which no terminator is.
func encodeLimits(l change.Limits) []byte {
	text, _ := json.Marshal(l) // of three strings it cannot fail
	return text
}

// parsePending is the inverse of pendingKey and appendPending.
func parsePending(key, value []byte) (d PendingSnapshot, is standing, err error) {
	parts := bytes.Split(key[1:], []byte{terminator})
	switch {
	case key[0] == tableLimited && len(parts) == 4:
		if err := json.Unmarshal(parts[3], &d.Limits); err != nil {
			return d, is, err
		}
	case key[0] != tablePending || len(parts) != 3:
		return d, is, errValue
	}
	d.Stream, d.Sink, d.Reason = string(parts[1]), string(parts[0]), change.Reason(parts[2])
	is, err = parsePendingValue(value, &d.Owed)
	return d, is, err
}
