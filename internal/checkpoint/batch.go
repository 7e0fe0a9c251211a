package checkpoint

import "github.com/cockroachdb/pebble/v2"

// batch is what one write makes durable. It remembers the first error, with which nothing is written.
type batch struct {
	of    *pebble.Batch
	err   error
	saved func() error // what is to be done when it is durable, before the next write; nil is nothing

	key, value []byte // for who fills it, to be used again: the batch copies them
}

func (b *batch) set(key, value []byte) { b.note(b.of.Set(key, value, nil)) }

func (b *batch) remove(key []byte) { b.note(b.of.Delete(key, nil)) }

// removeAll removes the keys with the prefix.
func (b *batch) removeAll(prefix []byte) { b.note(b.of.DeleteRange(prefix, after(prefix), nil)) }

func (b *batch) note(err error) {
	if b.err == nil {
		b.err = err
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
