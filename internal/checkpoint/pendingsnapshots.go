package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"slices"

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

// standing is what is known of a pending snapshot.
type standing byte

const (
	nothing standing = iota
	owed
	paused
	stopped // it is owed no more, until it is owed again: in a newer generation
)

// find is what is saved of the pending snapshot: its generation and its standing.
func (d pendingSnapshots) find(of *PendingSnapshot) (generation uint64, is standing, err error) {
	value, found, err := d.get(pendingKey(of))
	if err == nil && found {
		generation, is, err = parsePendingValue(value)
	}
	if err != nil {
		err = d.badValue("a pending snapshot", err)
	}
	return generation, is, err
}

// owe notes a pending snapshot. What is owed already is owed from its beginning: the snapshot that is under way does
// not pay it.
func (d pendingSnapshots) owe(r *rows, of *PendingSnapshot) error {
	generation, was, err := d.find(of)
	if err != nil {
		return err
	}
	if was != nothing {
		generation++
	}
	is := owed
	if of.Paused {
		is = paused
	}
	r.set(pendingKey(of), appendPending(nil, max(generation, of.Generation), is))
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
func (d pendingSnapshots) steer(r *rows, do Steering, of *PendingSnapshot) error {
	generation, was, err := d.find(of)
	if err != nil || was != nothing && generation != of.Generation {
		return err
	}
	exists := was == owed || was == paused
	switch {
	case do == Pause && (exists || was == nothing && of.Reason == change.Resync):
		r.set(pendingKey(of), appendPending(nil, generation, paused))
	case do == Resume && exists:
		r.set(pendingKey(of), appendPending(nil, generation, owed))
	case do == Stop && exists:
		r.set(pendingKey(of), appendPending(nil, generation, stopped))
	}
	return nil
}

// Pay forgets the snapshot, which its sink has, unless it is owed anew since.
func (d pendingSnapshots) Pay(of PendingSnapshot) error {
	return d.write(func(r *rows) error {
		generation, was, err := d.find(&of)
		if err == nil && generation == of.Generation && (was == owed || was == paused) {
			r.remove(pendingKey(&of))
		}
		return err
	})
}

// The value of a pending snapshot that is not just owed ends with one of these. No name does.
const (
	isPaused  = "\x00paused"
	isStopped = "\x00stopped"
)

// appendPending appends the value of a pending snapshot: generation, standing. One of the first generation that is just
// owed has none.
func appendPending(dst []byte, generation uint64, is standing) []byte {
	if is == owed && generation == 0 {
		return dst
	}
	dst = binary.AppendUvarint(dst, generation)
	switch is {
	case paused:
		return append(dst, isPaused...)
	case stopped:
		return append(dst, isStopped...)
	}
	return dst
}

// parsePendingValue is the inverse of appendPending. An earlier version has a name before the standing, up to which the
// sink had the objects.
func parsePendingValue(value []byte) (generation uint64, is standing, err error) {
	if len(value) == 0 {
		return 0, owed, nil
	}
	generation, width := binary.Uvarint(value)
	switch {
	case width <= 0:
		return 0, nothing, errValue
	case bytes.HasSuffix(value, []byte(isPaused)):
		return generation, paused, nil
	case bytes.HasSuffix(value, []byte(isStopped)):
		return generation, stopped, nil
	}
	return generation, owed, nil
}

func pendingKey(d *PendingSnapshot) []byte {
	if d.Limits == (change.Limits{}) {
		return pendingKeyIn(tablePending, d)
	}
	return append(append(pendingKeyIn(tableLimited, d), terminator), encodeLimits(d.Limits)...)
}

func pendingKeyIn(table byte, d *PendingSnapshot) []byte {
	return append(append(append(sinkPrefix(table, d.Sink), d.Stream...), terminator), d.Reason...)
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
	d.Generation, is, err = parsePendingValue(value)
	return d, is, err
}
