package checkpoint

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
)

// PendingSnapshot is a full snapshot of a stream that one sink must be given, whatever happens before it is complete.
type PendingSnapshot struct {
	Stream string
	change.Owed
}

// pendingSnapshots are the snapshots that are owed.
type pendingSnapshots struct{ *database }

// PendingSnapshots are the snapshots that are owed, sorted by sink and stream.
func (d pendingSnapshots) PendingSnapshots() ([]PendingSnapshot, error) {
	var all []PendingSnapshot
	err := d.each([]byte{tablePending}, func(key, value []byte) error {
		pendingSnapshot, ok := parsePending(key)
		if !ok {
			return d.badValue("a pending snapshot", errValue)
		}
		var err error
		if pendingSnapshot.Generation, pendingSnapshot.After, err = parsePendingValue(value); err != nil {
			return d.badValue("a pending snapshot", err)
		}
		all = append(all, pendingSnapshot)
		return nil
	})
	return all, err
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
	exists  bool
	changed bool
}

// find is the saved pending snapshot as the batch has changed it so far.
func (k *pendingBook) find(subscription Subscription, reason change.Reason) (*bookedPending, error) {
	id := PendingSnapshot{Stream: subscription.Stream, Owed: change.Owed{Sink: subscription.Sink, Reason: reason}}
	if known := k.known[id]; known != nil {
		return known, nil
	}
	d := &bookedPending{owed: id.Owed}
	value, found, err := k.db.get(pendingKey(id))
	if err != nil {
		return nil, err
	}
	if found {
		if d.owed.Generation, d.owed.After, err = parsePendingValue(value); err != nil {
			return nil, k.db.badValue("a pending snapshot", err)
		}
	}
	d.exists = found
	k.known[id] = d
	return d, nil
}

// owe notes a pending snapshot. What is owed already is owed from its beginning: the snapshot that is under way does
// not pay it.
func (k *pendingBook) owe(pendingSnapshot PendingSnapshot) error {
	d, err := k.find(Subscription{pendingSnapshot.Sink, pendingSnapshot.Stream}, pendingSnapshot.Reason)
	if err != nil {
		return err
	}
	if d.exists {
		d.owed.Generation++
	}
	d.owed.Generation = max(d.owed.Generation, pendingSnapshot.Generation)
	d.owed.After, d.exists, d.changed = "", true, true
	return nil
}

// pay notes how far a record of a snapshot for one sink brings its pending snapshot: its end pays it, and an object in
// order moves the cursor.
func (k *pendingBook) pay(rec *change.Record, stream string) error {
	end, object := rec.Op == change.SnapshotEnd, rec.Op == change.Sync && rec.Snapshot.Ordered
	if !end && !object {
		return nil
	}
	d, err := k.find(Subscription{rec.Sink, stream}, rec.Snapshot.Reason)
	if err != nil || !d.exists || d.owed.Generation != rec.Snapshot.Generation {
		return err
	}
	if d.changed = true; end {
		d.exists = false
	} else {
		d.owed.After = rec.Key.String()
	}
	return nil
}

// close writes the pending snapshots that the batch changed.
func (k *pendingBook) close() {
	for id, d := range k.known {
		switch {
		case !d.changed:
		case d.exists:
			k.to.value = appendPending(k.to.value[:0], d.owed)
			k.to.set(pendingKey(id), k.to.value)
		default:
			k.to.remove(pendingKey(id))
		}
	}
}

// appendPending appends the value of a pending snapshot: generation, cursor. A pending snapshot of the first generation
// that has no cursor has no value, as pending snapshots had before there were generations.
func appendPending(dst []byte, owed change.Owed) []byte {
	if owed.Generation == 0 && owed.After == "" {
		return dst
	}
	return append(binary.AppendUvarint(dst, owed.Generation), owed.After...)
}

// parsePendingValue is the inverse of appendPending.
func parsePendingValue(value []byte) (generation uint64, after string, err error) {
	if len(value) == 0 {
		return 0, "", nil
	}
	generation, width := binary.Uvarint(value)
	if width <= 0 {
		return 0, "", errValue
	}
	return generation, string(value[width:]), nil
}

func pendingKey(d PendingSnapshot) []byte {
	return slices.Concat(sinkPrefix(tablePending, d.Sink), []byte(d.Stream), []byte{terminator}, []byte(d.Reason))
}

// parsePending is the inverse of pendingKey.
func parsePending(key []byte) (PendingSnapshot, bool) {
	part := bytes.Split(key[1:], []byte{terminator})
	if len(part) != 3 {
		return PendingSnapshot{}, false
	}
	return PendingSnapshot{Stream: string(part[1]), Owed: change.Owed{Sink: string(part[0]), Reason: change.Reason(part[2])}}, true
}
