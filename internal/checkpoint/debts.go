package checkpoint

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Debt is a full snapshot of a stream that one sink must be given, whatever happens before it is complete.
type Debt struct {
	Stream string
	change.Owed
}

// debts are the snapshots that are owed.
type debts struct{ *database }

// Debts are the snapshots that are owed, sorted by sink and stream.
func (d debts) Debts() ([]Debt, error) {
	var all []Debt
	err := d.each([]byte{tableDebt}, func(key, value []byte) error {
		debt, ok := parseDebt(key)
		if !ok {
			return d.badValue("a debt", errValue)
		}
		var err error
		if debt.Generation, debt.After, err = parseDebtValue(value); err != nil {
			return d.badValue("a debt", err)
		}
		all = append(all, debt)
		return nil
	})
	return all, err
}

// debtBook is the debts as a batch changes them.
type debtBook struct {
	db    *database
	to    *rows
	known map[Debt]*bookedDebt // by what they are the same by: no generation, no cursor
}

// bookedDebt is what a batch knows of one debt.
type bookedDebt struct {
	owed    change.Owed
	exists  bool
	changed bool
}

// find is the saved debt as the batch has changed it so far.
func (k *debtBook) find(subscription Subscription, reason change.Reason) (*bookedDebt, error) {
	id := Debt{Stream: subscription.Stream, Owed: change.Owed{Sink: subscription.Sink, Reason: reason}}
	if known := k.known[id]; known != nil {
		return known, nil
	}
	d := &bookedDebt{owed: id.Owed}
	value, found, err := k.db.get(debtKey(id))
	if err != nil {
		return nil, err
	}
	if found {
		if d.owed.Generation, d.owed.After, err = parseDebtValue(value); err != nil {
			return nil, k.db.badValue("a debt", err)
		}
	}
	d.exists = found
	k.known[id] = d
	return d, nil
}

// owe notes a debt. What is owed already is owed from its beginning: the snapshot that is under way does not pay it.
func (k *debtBook) owe(debt Debt) error {
	d, err := k.find(Subscription{debt.Sink, debt.Stream}, debt.Reason)
	if err != nil {
		return err
	}
	if d.exists {
		d.owed.Generation++
	}
	d.owed.Generation = max(d.owed.Generation, debt.Generation)
	d.owed.After, d.exists, d.changed = "", true, true
	return nil
}

// pay notes how far a record of a snapshot for one sink brings its debt: its end pays it, and an object in order moves
// the cursor.
func (k *debtBook) pay(rec *change.Record, stream string) error {
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

// close writes the debts that the batch changed.
func (k *debtBook) close() {
	for id, d := range k.known {
		switch {
		case !d.changed:
		case d.exists:
			k.to.value = appendDebt(k.to.value[:0], d.owed)
			k.to.set(debtKey(id), k.to.value)
		default:
			k.to.remove(debtKey(id))
		}
	}
}

// appendDebt appends the value of a debt: generation, cursor. A debt of the first generation that has no cursor has no
// value, as debts had before there were generations.
func appendDebt(dst []byte, owed change.Owed) []byte {
	if owed.Generation == 0 && owed.After == "" {
		return dst
	}
	return append(binary.AppendUvarint(dst, owed.Generation), owed.After...)
}

// parseDebtValue is the inverse of appendDebt.
func parseDebtValue(value []byte) (generation uint64, after string, err error) {
	if len(value) == 0 {
		return 0, "", nil
	}
	generation, width := binary.Uvarint(value)
	if width <= 0 {
		return 0, "", errValue
	}
	return generation, string(value[width:]), nil
}

func debtKey(d Debt) []byte {
	return slices.Concat(sinkPrefix(tableDebt, d.Sink), []byte(d.Stream), []byte{terminator}, []byte(d.Reason))
}

// parseDebt is the inverse of debtKey.
func parseDebt(key []byte) (Debt, bool) {
	part := bytes.Split(key[1:], []byte{terminator})
	if len(part) != 3 {
		return Debt{}, false
	}
	return Debt{Stream: string(part[1]), Owed: change.Owed{Sink: string(part[0]), Reason: change.Reason(part[2])}}, true
}
