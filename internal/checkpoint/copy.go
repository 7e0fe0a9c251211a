package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/cockroachdb/pebble/v2"
)

// Copy is a directory that follows a log of the state: what a standby has. It belongs to this process until Close
// (I10), and Open refuses it until Finish makes it a state.
//
// What the copy has of the log is written together with the place up to which it has it. So a process that is killed
// leaves the copy as of an earlier place, and never between two. A copy that is being filled has no place.
type Copy struct {
	dir   string
	opts  Options
	lock  io.Closer
	owned bool      // it is a state
	into  *Restorer // nil where there is no copy
	place []byte    // up to which it has the log; nil while it is being filled
}

// OpenCopy takes the directory, and goes on with a copy that it finds there. A damaged one counts for nothing. A state
// stays as it is until Begin.
func OpenCopy(ctx context.Context, dir string, opts Options) (*Copy, error) {
	opts = opts.withDefaults()
	lock, err := opts.claim(dir)
	if err != nil {
		return nil, err
	}
	opts.Journal, opts.claim = nil, func(string) (io.Closer, error) { return io.NopCloser(nil), nil }
	c := &Copy{dir: dir, opts: opts, lock: lock}
	if err := c.resume(ctx); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return c, nil
}

// resume finds what is in the directory.
func (c *Copy) resume(ctx context.Context) error {
	empty, err := IsEmpty(ctx, c.dir, c.opts)
	if err == nil && !empty {
		c.owned = true
		return nil
	}
	if err == nil {
		err = c.open(ctx)
	}
	var damaged *DamagedError
	if errors.As(err, &damaged) {
		c.opts.Logger.Warn("the state directory is damaged; it is filled anew from the log of the state", "error", err)
		return nil
	}
	return err
}

// open opens the copy that the directory holds, if it does.
func (c *Copy) open(ctx context.Context) error {
	whole, err := isCopy(ctx, c.dir, c.opts)
	if err != nil || !whole {
		return err
	}
	d, err := newDatabase(ctx, c.dir, c.opts)
	if err != nil {
		return err
	}
	err = d.open(ctx, func() (err error) {
		c.place, _, err = d.get(restoringKey())
		return err
	})
	if err == nil {
		c.into = &Restorer{d}
	}
	return err
}

// isCopy says whether the directory holds a copy with a place.
func isCopy(ctx context.Context, dir string, opts Options) (whole bool, err error) {
	opts.ReadOnly = true
	d, err := newDatabase(ctx, dir, opts)
	if err != nil {
		return false, err
	}
	err = d.open(ctx, func() error {
		place, _, err := d.get(restoringKey())
		whole = len(place) > 0
		return err
	})
	if errors.Is(err, ErrNoState) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return whole, d.Close()
}

// IsState says whether the directory holds a state of its own, which is no copy.
func (c *Copy) IsState() bool { return c.owned }

// Place is up to where the copy has the log, nil where it has nothing whole.
func (c *Copy) Place() []byte { return c.place }

// Begin removes all that the directory has of a state. What is applied from here on fills it.
func (c *Copy) Begin(ctx context.Context) error {
	if err := c.shut(); err != nil {
		c.opts.Logger.Warn("the state directory could not be closed; it is filled anew", "error", err)
	}
	c.owned, c.place = false, nil
	if err := removeFiles(c.opts.fs, c.dir); err != nil {
		return fmt.Errorf("reset state %s: %w", c.dir, err)
	}
	r, err := beginRestoring(ctx, c.dir, c.opts)
	if err == nil {
		c.into = r
	}
	return err
}

// Apply applies what the log has up to the place, whole or not at all. Without a place it is a part of what fills the
// copy, which counts when a later call has a place.
func (c *Copy) Apply(changes Changes, place []byte) error {
	if c.into == nil {
		return fmt.Errorf("follow the log of the state in %s: it was not begun", c.dir)
	}
	if len(place) == 0 {
		return c.into.Apply(changes)
	}
	if err := c.into.follow(changes, place); err != nil {
		return err
	}
	c.place = bytes.Clone(place)
	return nil
}

// Finish gives each file to keep, and makes the copy a state, of which the log has everything at the place; nil is
// nowhere. Then it lets go of the directory.
func (c *Copy) Finish(place []byte, keep func(name string, content []byte) error) error {
	if c.into == nil || c.place == nil {
		return fmt.Errorf("finish the copy of the log of the state in %s: it is not whole", c.dir)
	}
	return errors.Join(c.into.Finish(place, keep), c.Close())
}

// Close lets go of the directory. A second call does nothing.
func (c *Copy) Close() error {
	if c.lock == nil {
		return nil
	}
	err := errors.Join(c.shut(), c.lock.Close())
	c.lock = nil
	return err
}

// shut closes the copy.
func (c *Copy) shut() error {
	if c.into == nil {
		return nil
	}
	into := c.into
	c.into = nil
	return into.Close()
}

// follow writes the changes and the place up to which they go. Only the end of a filling, which has no changes, is
// synced: a crash takes away what was written last, and the log has it still, or the copy is filled anew.
func (r *Restorer) follow(changes Changes, place []byte) error {
	if damage := r.damage.Load(); damage != nil {
		return damage
	}
	b := r.db.NewBatch()
	defer func() { _ = b.Close() }() // it only gives memory back
	err := changes.each(func(o *one) error { return o.apply(b) })
	if err == nil {
		err = b.Set(restoringKey(), place, nil)
	}
	if err != nil {
		return r.badValue("the log of the state", err)
	}
	if err := r.space.check("follow"); err != nil {
		return err
	}
	durable := pebble.NoSync
	if len(changes) == 0 {
		durable = pebble.Sync
	}
	if err := b.Commit(durable); err != nil {
		return r.failed("follow", err)
	}
	return nil
}

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
	if _, is := errors.AsType[*EarlierError](err); is {
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
