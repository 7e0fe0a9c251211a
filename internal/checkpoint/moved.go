package checkpoint

import (
	"bytes"
	"errors"

	"github.com/kubecdc/kubecdc/internal/change"
)

// movedAtOnce is how many bytes of rows one batch moves, about, so that a stream of any size takes bounded memory (I6).
const movedAtOnce = 1 << 20

// objects are what the keys begin with, behind the prefix of a table, of the objects that move.
func (h *heritage) objects(prefix []byte) []byte {
	if h.namespace == "" {
		return prefix
	}
	return append(append(bytes.Clone(prefix), h.namespace...), '/')
}

// inheritForm makes the heir keep objects in the form in which they were kept, unless it has one.
func (w *writer) inheritForm(h heritage) error {
	form, found, err := w.store.get(formKey(h.from))
	if err != nil || !found {
		return err
	}
	if _, has, err := w.store.get(formKey(h.to)); has || err != nil {
		return err
	}
	return w.batch.Set(formKey(h.to), form, nil)
}

// moveObjects moves what is known of the objects: the inventory, what sinks miss of them, and the objects themselves,
// where both streams keep them in the same form.
func (s *Store) moveObjects(h heritage, sinks []string) error {
	from, _, err := s.get(formKey(h.from))
	if err != nil {
		return err
	}
	to, _, err := s.get(formKey(h.to))
	if err != nil {
		return err
	}
	if bytes.Equal(from, to) {
		err = s.moveRows(h, streamPrefix(tableObject, h.from), streamPrefix(tableObject, h.to), always)
	} else {
		kept := h.objects(streamPrefix(tableObject, h.from))
		err = s.write(func(w *writer) error { return w.batch.DeleteRange(kept, after(kept), nil) })
	}
	for _, name := range sinks {
		for _, table := range []byte{tableMissed, tableFresh} {
			from, to := objectPrefix(table, Subscription{name, h.from}), objectPrefix(table, Subscription{name, h.to})
			err = errors.Join(err, s.moveRows(h, from, to, always))
		}
	}
	return errors.Join(err, s.moveRows(h, inventoryPrefix(h.from), inventoryPrefix(h.to), isNewer))
}

// always lets a row take the place of one that is there.
func always(_, _ []byte) (bool, error) { return true, nil }

// isNewer says whether an inventory's value is newer than the one that is there.
func isNewer(there, value []byte) (bool, error) {
	_, version, err := parseEntry(value)
	if err != nil {
		return false, err
	}
	_, known, err := parseEntry(there)
	return change.CompareVersions(version, known) >= 0, err
}

// errEnough ends a piece.
var errEnough = errors.New("enough for one batch")

// moveRows moves the rows of the heritage from behind one prefix to behind another one, piece by piece. replaces says
// whether a row takes the place of one that is there.
func (s *Store) moveRows(h heritage, from, to []byte, replaces func(there, value []byte) (bool, error)) error {
	for {
		more := false
		err := s.write(func(w *writer) error {
			err := w.movePiece(h.objects(from), len(from), to, replaces)
			if more = errors.Is(err, errEnough); more {
				return nil
			}
			return err
		})
		if err != nil || !more {
			return err
		}
	}
}

func (w *writer) movePiece(rows []byte, width int, to []byte, replaces func(there, value []byte) (bool, error)) error {
	return w.store.each(rows, func(key, value []byte) error {
		w.key = append(append(w.key[:0], to...), key[width:]...)
		there, found, err := w.store.get(w.key)
		if err != nil {
			return err
		}
		replace := !found
		if found {
			if replace, err = replaces(there, value); err != nil {
				return w.store.badValue("an object that is inherited", err)
			}
		}
		if replace {
			if err := w.batch.Set(w.key, value, nil); err != nil {
				return err
			}
		}
		if err := w.batch.Delete(key, nil); err != nil {
			return err
		}
		if w.batch.Len() >= w.store.opts.piece {
			return errEnough
		}
		return nil
	})
}

// holds says whether there is a key with the prefix.
func (s *Store) holds(prefix []byte) (bool, error) {
	err := s.each(prefix, func(_, _ []byte) error { return errEnough })
	if errors.Is(err, errEnough) {
		return true, nil
	}
	return false, err
}
