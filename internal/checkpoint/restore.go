package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/cockroachdb/pebble/v2"
)

// Restorer fills an empty directory with a state. Until Finish the directory is refused by Open.
type Restorer struct{ *database }

// Restore makes the directory one that is being filled. What an earlier one has left that was cut short is removed. A
// directory with a state in it is refused with ErrState.
func Restore(ctx context.Context, dir string, opts Options) (*Restorer, error) {
	if err := clearDir(ctx, dir, opts); err != nil {
		return nil, err
	}
	return beginRestoring(ctx, dir, opts)
}

// beginRestoring makes the directory, which holds nothing of a state, one that is being filled.
func beginRestoring(ctx context.Context, dir string, opts Options) (*Restorer, error) {
	opts.Journal = nil
	d, err := newDatabase(ctx, dir, opts.withDefaults())
	if err != nil {
		return nil, err
	}
	return &Restorer{d}, d.open(ctx, func() error { return d.set(restoringKey(), nil) })
}

// ErrState says that a directory that is to be filled holds a state.
var ErrState = errors.New("it holds a state already: choose another state.dir, or remove it with exporter checkpoint reset")

// IsEmpty says whether the directory holds no state, or only the beginning of one that is being restored.
func IsEmpty(ctx context.Context, dir string, opts Options) (bool, error) {
	opts.ReadOnly, opts.Journal = true, nil
	store, err := Open(ctx, dir, opts)
	if errors.Is(err, ErrNoState) || errors.Is(err, ErrRestoring) {
		return true, nil
	}
	var earlier *EarlierError
	if errors.As(err, &earlier) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return false, store.Close()
}

// clearDir makes sure that the directory holds no state, nor the beginning of one.
func clearDir(ctx context.Context, dir string, opts Options) error {
	empty, err := IsEmpty(ctx, dir, opts)
	if err != nil {
		return err
	}
	if !empty {
		return fmt.Errorf("restore state %s: %w", dir, ErrState)
	}
	if err := Discard(dir); !errors.Is(err, ErrNoState) {
		return err
	}
	return nil
}

// Apply applies changes. They are durable with Finish.
func (r *Restorer) Apply(c Changes) error {
	const piece = 256 << 10
	for len(c) > 0 {
		b := r.db.NewBatch()
		for b.Len() < piece && len(c) > 0 {
			first, rest, err := c.next()
			if err == nil {
				err = first.apply(b)
			}
			if err != nil {
				_ = b.Close() // what is in it counts for nothing
				return r.badValue("the log of the state", err)
			}
			c = rest
		}
		if err := r.space.check("restore"); err != nil {
			return errors.Join(err, b.Close())
		}
		if err := b.Commit(pebble.NoSync); err != nil {
			return r.failed("restore", err)
		}
	}
	return nil
}

func (o *one) apply(b *pebble.Batch) error {
	switch o.kind {
	case changeSet:
		return b.Set(o.key, o.value, nil)
	case changeRemove:
		return b.Delete(o.key, nil)
	default:
		return b.DeleteRange(o.key, o.value, nil)
	}
}

// Finish gives each file to keep, and makes the directory a state, of which the log has everything at the place; nil is
// nowhere. A log that an earlier version wrote becomes a state of its format, which Open converts.
func (r *Restorer) Finish(place []byte, keep func(name string, content []byte) error) error {
	from, to := FileRange()
	err := r.each(from, func(key, value []byte) error {
		name, _ := isFile(key)
		return keep(name, value)
	})
	if err != nil {
		return err
	}
	format, err := r.formatOfRows()
	if err != nil {
		return err
	}
	return r.write(func(b *rows) error {
		b.note(b.of.DeleteRange(from, to, nil))
		b.remove(restoringKey())
		if place != nil {
			b.set(loggedKey(), place)
		}
		b.set(formatKey(), []byte(strconv.Itoa(format)))
		return nil
	})
}
