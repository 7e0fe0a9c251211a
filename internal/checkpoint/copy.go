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

// Led relates a state directory to the log of the state.
type Led struct {
	Claim  []byte // on the log, with which the state was led last; nil if not known
	Logged []byte // the place where the log had all of the state when it was closed; nil if it may lack something
}

// holding is what a directory holds.
type holding struct {
	isState bool
	led     Led
	place   []byte // of a copy of the log; nil if there is none, or it is being filled
}

// LedAt reads the Led of a directory. found is false if it holds no state, or one that is being restored.
func LedAt(ctx context.Context, dir string, opts Options) (led Led, found bool, err error) {
	has, err := look(ctx, dir, opts)
	return has.led, has.isState, err
}

// look reads what the directory holds, and changes nothing in it.
func look(ctx context.Context, dir string, opts Options) (has holding, err error) {
	opts.ReadOnly, opts.Journal = true, nil
	d, err := newDatabase(ctx, dir, opts.withDefaults())
	if err == nil {
		err = d.open(ctx, func() (err error) {
			has, err = d.holding()
			return err
		})
	}
	if errors.Is(err, ErrNoState) {
		return holding{}, nil
	}
	if err != nil {
		return holding{}, err
	}
	return has, d.Close()
}

func (d *database) holding() (has holding, err error) {
	if err = d.checkFormat(); errors.Is(err, ErrRestoring) {
		has.place, _, err = d.get(keyOf(tableRestoring))
		return has, err
	}
	if has.isState = err == nil; has.isState {
		has.led.Claim, _, err = d.get(keyOf(tableLogged, "c"))
	}
	if err == nil {
		has.led.Logged, _, err = d.get(keyOf(tableLogged))
	}
	return has, err
}

// Copy is a directory that follows a log of the state: that of a standby, or one that is restored. It belongs to this
// process until Close (I10), and Open refuses it until Finish makes it a state.
//
// Changes are written together with the place in the log up to which the copy has them. So a process that is killed
// leaves the copy at an earlier place, and never between two. A copy that is being filled has no place.
type Copy struct {
	dir   string
	opts  Options
	lock  io.Closer
	db    *database // nil if there is no copy
	owned bool      // the directory holds a state
	led   Led       // of that state
	place []byte    // up to which it has the log; nil while it is being filled
}

// OpenCopy takes the directory, and goes on with a copy that it finds there, unless that is damaged. A state stays as
// it is until Begin.
func OpenCopy(ctx context.Context, dir string, opts Options) (*Copy, error) {
	return openCopy(dir, opts, func(c *Copy) error {
		has, err := look(ctx, dir, c.opts)
		if c.owned, c.led = has.isState, has.led; len(has.place) > 0 {
			c.place = has.place
			err = c.open(ctx, func(*database) error { return nil })
		}
		if damaged := (*DamagedError)(nil); errors.As(err, &damaged) {
			c.opts.Logger.Warn("the state directory is damaged; it is filled anew from the log of the state", "error", err)
			c.owned, c.place, err = false, nil, nil
		}
		return err
	})
}

// ErrState says that a directory that is to be filled holds a state.
var ErrState = errors.New("it holds a state already: choose another state.dir, or remove it with exporter checkpoint reset")

// Restore makes the directory a copy that is being filled. It removes what an interrupted Restore has left, and refuses
// a directory with a state with ErrState.
func Restore(ctx context.Context, dir string, opts Options) (*Copy, error) {
	return openCopy(dir, opts, func(c *Copy) error {
		has, err := look(ctx, dir, c.opts)
		switch {
		case err != nil:
			return err
		case has.isState:
			return fmt.Errorf("restore state %s: %w", dir, ErrState)
		}
		return c.Begin(ctx)
	})
}

// openCopy takes the directory, and calls begin.
func openCopy(dir string, opts Options, begin func(*Copy) error) (*Copy, error) {
	opts = opts.withDefaults()
	lock, err := opts.claim(dir)
	if err != nil {
		return nil, err
	}
	opts.Journal, opts.claim = nil, func(string) (io.Closer, error) { return io.NopCloser(nil), nil }
	c := &Copy{dir: dir, opts: opts, lock: lock}
	if err := begin(c); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Copy) open(ctx context.Context, load func(*database) error) error {
	db, err := newDatabase(ctx, c.dir, c.opts)
	if err == nil {
		err = db.open(ctx, func() error { return load(db) }) // which may go on when ctx has ended
	}
	if err == nil {
		c.db = db
	}
	return err
}

// IsState says whether the directory holds a state of its own, which is no copy.
func (c *Copy) IsState() bool { return c.owned }

// Led relates that state to the log.
func (c *Copy) Led() Led { return c.led }

// Place is up to where the copy has the log; nil if it is not whole yet.
func (c *Copy) Place() []byte { return c.place }

// Begin removes the state or the copy in the directory. What is applied from then on fills it anew.
func (c *Copy) Begin(ctx context.Context) error {
	if err := c.shut(); err != nil {
		c.opts.Logger.Warn("the state directory could not be closed; it is filled anew", "error", err)
	}
	c.owned, c.place = false, nil
	if err := removeFiles(c.opts.fs, c.dir); err != nil {
		return fmt.Errorf("reset state %s: %w", c.dir, err)
	}
	return c.open(ctx, func(db *database) error { return db.set(keyOf(tableRestoring), nil) })
}

// Apply applies the changes of the log up to the place, all or none. Without a place they are a part of what fills the
// copy, which is whole when a later call has a place.
//
// Only the end of a filling, a call without changes, is synced: what a crash loses, the log still has, or the copy is
// filled anew.
func (c *Copy) Apply(changes Changes, place []byte) error {
	if c.db == nil {
		return fmt.Errorf("follow the log of the state in %s: it was not begun", c.dir)
	}
	if damage := c.db.damage.Load(); damage != nil {
		return damage
	}
	b := c.db.db.NewBatch()
	defer func() { _ = b.Close() }() // it only gives memory back
	err := changes.each(func(o *keyChange) error { return o.apply(b) })
	if err == nil && place != nil {
		err = b.Set(keyOf(tableRestoring), place, nil)
	}
	if err != nil {
		return c.db.badValue("the log of the state", err)
	}
	if err := c.db.space.check("follow"); err != nil {
		return err
	}
	durable := pebble.NoSync
	if len(changes) == 0 {
		durable = pebble.Sync
	}
	if err := b.Commit(durable); err != nil {
		return c.db.failed("follow", err)
	}
	if place != nil {
		c.place = bytes.Clone(place)
	}
	return nil
}

func (o *keyChange) apply(b *pebble.Batch) error {
	switch o.kind {
	case changeSet:
		return b.Set(o.key, o.value, nil)
	case changeRemove:
		return b.Delete(o.key, nil)
	default:
		return b.DeleteRange(o.key, o.value, nil)
	}
}

// Finish passes each file to keep, and makes the copy a state. place is where the log has all of it, nil if not known.
// Then it releases the directory.
func (c *Copy) Finish(place []byte, keep func(name string, content []byte) error) error {
	if c.place == nil {
		return fmt.Errorf("finish the copy of the log of the state in %s: it is not whole", c.dir)
	}
	return errors.Join(c.finish(place, keep), c.Close())
}

func (c *Copy) finish(place []byte, keep func(name string, content []byte) error) error {
	files, end := FileRange()
	err := c.db.each(files, func(key, value []byte) error { return keep(string(key[1:]), value) })
	if err != nil {
		return err
	}
	return c.db.write(func(b *rows) error {
		b.note(b.of.DeleteRange(files, end, nil))
		b.remove(keyOf(tableRestoring))
		if place != nil {
			b.set(keyOf(tableLogged), place)
		}
		b.set(keyOf(tableFormat), []byte(strconv.Itoa(formatVersion)))
		return nil
	})
}

// Close releases the directory. A second call does nothing.
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
	if c.db == nil {
		return nil
	}
	err := c.db.Close()
	c.db = nil
	return err
}
