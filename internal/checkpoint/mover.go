package checkpoint

import (
	"bytes"
	"errors"

	"github.com/kubecdc/kubecdc/internal/change"
)

// mover moves the objects of a inheritance.
type mover struct {
	*database
	inheritance
}

// form makes the heir keep objects in the form in which they were kept, unless it has one.
func (m *mover) form() error {
	form, found, err := m.get(formKey(m.from))
	if err != nil || !found {
		return err
	}
	if _, has, err := m.get(formKey(m.to)); has || err != nil {
		return err
	}
	return m.set(formKey(m.to), form)
}

// objects moves what is known of the objects: the inventory, what sinks miss of them, and the objects themselves,
// where both streams keep them in the same form.
func (m *mover) objects(sinks []string) error {
	from, _, err := m.get(formKey(m.from))
	if err != nil {
		return err
	}
	to, _, err := m.get(formKey(m.to))
	if err != nil {
		return err
	}
	if kept := streamPrefix(tableObject, m.from); bytes.Equal(from, to) {
		err = m.move(kept, streamPrefix(tableObject, m.to), always)
	} else {
		err = m.write(func(b *rows) error {
			b.removeAll(m.part(kept))
			return nil
		})
	}
	// What sinks miss goes after the objects: a crash in between leaves a stream that has objects, and so is found.
	err = errors.Join(err, m.move(inventoryPrefix(m.from), inventoryPrefix(m.to), isNewer))
	for _, name := range sinks {
		for _, table := range lackTables() {
			from, to := objectPrefix(table, Subscription{name, m.from}), objectPrefix(table, Subscription{name, m.to})
			err = errors.Join(err, m.move(from, to, always))
		}
	}
	return err
}

// any says whether anything of the objects is there to be moved. A crash may have left an object with one stream, and
// what sinks miss of it with the other.
func (m *mover) any(sinks []string) (bool, error) {
	prefixes := [][]byte{inventoryPrefix(m.from)}
	for _, name := range sinks {
		for _, table := range lackTables() {
			prefixes = append(prefixes, objectPrefix(table, Subscription{name, m.from}))
		}
	}
	for _, prefix := range prefixes {
		if some, err := m.holds(m.part(prefix)); some || err != nil {
			return some, err
		}
	}
	return false, nil
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

// move moves rows from behind one prefix to behind another one, piece by piece. replaces says whether a row takes the
// place of one that is there.
func (m *mover) move(from, to []byte, replaces func(there, value []byte) (bool, error)) error {
	for {
		more := false
		err := m.write(func(b *rows) error {
			err := m.each(m.part(from), func(key, value []byte) error {
				b.key = append(append(b.key[:0], to...), key[len(from):]...)
				if err := m.replace(b, value, replaces); err != nil {
					return err
				}
				if b.remove(key); b.of.Len() >= m.opts.piece {
					return errEnough
				}
				return nil
			})
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

// replace writes the row under the batch's key, unless the one that is there stays.
func (m *mover) replace(b *rows, value []byte, replaces func(there, value []byte) (bool, error)) error {
	there, found, err := m.get(b.key)
	if err != nil {
		return err
	}
	if found {
		if newer, err := replaces(there, value); err != nil {
			return m.badValue("an object that is inherited", err)
		} else if !newer {
			return nil
		}
	}
	b.set(b.key, value)
	return nil
}
