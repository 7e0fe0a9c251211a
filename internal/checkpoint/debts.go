package checkpoint

import (
	"encoding/binary"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Debt is a full snapshot of a stream that one sink must be given, whatever happens before it is complete.
type Debt struct {
	Stream string
	change.Owed
}

// debtWrite is what a batch knows of one debt.
type debtWrite struct {
	owed    change.Owed
	exists  bool
	changed bool
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

// debt is the saved one as the batch has changed it so far.
func (w *writer) debt(stream, sinkName string, reason change.Reason) (*debtWrite, error) {
	id := Debt{Stream: stream, Owed: change.Owed{Sink: sinkName, Reason: reason}}
	if known := w.debts[id]; known != nil {
		return known, nil
	}
	d := &debtWrite{owed: id.Owed}
	value, found, err := w.store.get(debtKey(id))
	if err != nil {
		return nil, err
	}
	if found {
		if d.owed.Generation, d.owed.After, err = parseDebtValue(value); err != nil {
			return nil, w.store.badValue("a debt", err)
		}
	}
	d.exists = found
	w.debts[id] = d
	return d, nil
}

// owe notes a debt. What is owed already is owed from its beginning: the snapshot that is under way does not pay it.
func (w *writer) owe(debt Debt) error {
	d, err := w.debt(debt.Stream, debt.Sink, debt.Reason)
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

// towards notes how far a record of a snapshot for one sink brings its debt: its end pays it, and an object in order
// moves the cursor.
func (w *writer) towards(rec *change.Record, in *streamWrite) error {
	stream := in.name
	if w.isAbsent(rec.Sink, in) {
		return nil // the sink was not given it
	}
	end, object := rec.Op == change.SnapshotEnd, rec.Op == change.Sync && rec.Snapshot.Ordered
	if !end && !object {
		return nil
	}
	d, err := w.debt(stream, rec.Sink, rec.Snapshot.Reason)
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

// settleDebts writes the debts that the batch changed.
func (w *writer) settleDebts() error {
	for id, d := range w.debts {
		var err error
		switch {
		case !d.changed:
		case d.exists:
			w.value = appendDebt(w.value[:0], d.owed)
			err = w.batch.Set(debtKey(id), w.value, nil)
		default:
			err = w.batch.Delete(debtKey(id), nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
