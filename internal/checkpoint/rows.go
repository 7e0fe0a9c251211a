package checkpoint

import "github.com/cockroachdb/pebble/v2"

// rows are what one write makes durable, all or none. They remember the first error, with which nothing is written.
type rows struct {
	of  *pebble.Batch
	err error

	key, value []byte // for who fills them, to be used again: they are copied
}

func (r *rows) set(key, value []byte) { r.note(r.of.Set(key, value, nil)) }

func (r *rows) remove(key []byte) { r.note(r.of.Delete(key, nil)) }

// removeAll removes the keys with the prefix.
func (r *rows) removeAll(prefix []byte) { r.note(r.of.DeleteRange(prefix, after(prefix), nil)) }

func (r *rows) note(err error) {
	if r.err == nil {
		r.err = err
	}
}

// inOrder takes the steps until one fails.
func inOrder(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
