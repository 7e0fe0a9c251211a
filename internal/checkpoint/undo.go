package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// undo keeps for each sink with records on disk what its rows were when it had none.
//
// A sink counts as told of what is on disk for it, and only this directory has that. Whoever restores the state from
// its log lacks it, so he takes back what was told since: he has the sink as it was in the last state in which nothing
// was on disk for it, and all others as they are (Restorer.Finish). So the log of the state has every row as it is, and
// stands still for no sink.
//
// An undo row is written together with the first change of what it is of, and all of the sink's go with the write that
// leaves nothing on disk for it. The database's lock guards it.
type undo struct {
	db      *database
	spooled map[string]bool // sinks that have records on disk
}

// sinkOf is the sink whose row it is. Its records on disk are none.
func sinkOf(key []byte) (name []byte, is bool) {
	switch key[0] {
	case tableRow, tableGrave, tablePlace, tableMark, tableSpooled, tablePending, tableLimited, tableHeard:
		name, _, _ = bytes.Cut(key[1:], []byte{terminator})
		return name, true
	}
	return nil, false
}

// fill adds to the batch what is to be known of the rows that it changes, and returns which sinks have records on disk
// after it.
func (u *undo) fill(b *pebble.Batch) (spooled map[string]bool, err error) {
	if u == nil {
		return nil, nil
	}
	if spooled, err = u.after(b); err != nil {
		return nil, err
	}
	if len(spooled) > 0 {
		err = u.keepAll(b, spooled)
	}
	for name := range u.spooled {
		if prefix := sinkPrefix(tableUndo, name); err == nil && !spooled[name] {
			err = b.DeleteRange(prefix, after(prefix), nil)
		}
	}
	return spooled, err
}

// after is which sinks have records on disk after the batch.
func (u *undo) after(b *pebble.Batch) (map[string]bool, error) {
	spooled := u.spooled
	err := eachOf(b, func(kind pebble.InternalKeyKind, key, value []byte) error {
		if key[0] != tableSpooled || kind == pebble.InternalKeyKindRangeDelete {
			return nil
		}
		has := false
		if kind == pebble.InternalKeyKindSet {
			spool, err := parseSpool(value)
			if err != nil {
				return err
			}
			has = !spool.Empty()
		}
		if name := string(key[1:]); has != spooled[name] {
			if spooled = maps.Clone(spooled); has {
				spooled[name] = true
			} else {
				delete(spooled, name)
			}
		}
		return nil
	})
	return spooled, err
}

// keepAll adds the undo rows of what the batch changes of the sinks.
func (u *undo) keepAll(b *pebble.Batch, spooled map[string]bool) error {
	var changed [][]byte
	note := func(key []byte) {
		if name, is := sinkOf(key); is && spooled[string(name)] {
			changed = append(changed, key)
		}
	}
	err := eachOf(b, func(kind pebble.InternalKeyKind, key, value []byte) error {
		if kind != pebble.InternalKeyKindRangeDelete {
			note(key)
			return nil
		}
		return u.db.within(key, value, func(key, _ []byte) error { note(bytes.Clone(key)); return nil })
	})
	if err != nil || len(changed) == 0 {
		return err
	}
	slices.SortFunc(changed, bytes.Compare) // so each block is read once: a look-up of one key costs many times as much
	kept, err := u.db.db.NewIter(&pebble.IterOptions{LowerBound: []byte{tableUndo}, UpperBound: []byte{tableUndo + 1}})
	if err != nil {
		return u.db.failed("read", err)
	}
	saved, err := u.db.db.NewIter(nil)
	if err != nil {
		return u.db.failed("read", errors.Join(err, kept.Close()))
	}
	for _, key := range slices.CompactFunc(changed, bytes.Equal) {
		name, _ := sinkOf(key)
		of := append(sinkPrefix(tableUndo, string(name)), key...)
		if kept.SeekGE(of) && bytes.Equal(kept.Key(), of) {
			continue
		}
		var was []byte
		if saved.SeekGE(key) && bytes.Equal(saved.Key(), key) {
			was = append([]byte{1}, saved.Value()...)
		}
		if err == nil {
			err = b.Set(of, was, nil)
		}
	}
	if err := errors.Join(kept.Close(), saved.Close(), err); err != nil { // closing repeats the error of a look-up
		return u.db.failed("read", err)
	}
	return nil
}

// takeBack makes the rows of each sink that has records on disk what they were when it had none, and says whether there
// were any. The undo rows stay. A copy that is left in the middle of it counts for nothing.
func (r *Restorer) takeBack() (some bool, err error) {
	if some, err = r.holds([]byte{tableUndo}); err != nil || !some {
		return false, err
	}
	if err := r.set(restoringKey(), nil); err != nil {
		return false, err
	}
	var back Changes
	err = r.each([]byte{tableUndo}, func(key, value []byte) error {
		_, of, found := bytes.Cut(key, []byte{terminator})
		switch {
		case !found || len(of) == 0:
			return r.badValue("what a sink's rows were", errValue)
		case len(value) == 0:
			back = back.Remove(of)
		default:
			back = back.Set(of, value[1:])
		}
		if len(back) < r.opts.piece {
			return nil
		}
		err := r.Apply(back)
		back = back[:0]
		return err
	})
	if err == nil {
		err = r.Apply(back)
	}
	if err != nil {
		return false, fmt.Errorf("take back what was told to the disk: %w", err)
	}
	return true, nil
}

// eachOf visits what the batch changes. What the visit adds to it is not visited.
func eachOf(b *pebble.Batch, visit func(kind pebble.InternalKeyKind, key, value []byte) error) error {
	for r := b.Reader(); ; {
		kind, key, value, more, err := r.Next()
		if err != nil || !more {
			return err
		}
		if err := visit(kind, key, value); err != nil {
			return err
		}
	}
}
