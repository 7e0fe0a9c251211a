package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// database is Pebble's database in a directory that this process owns (I10): keys and values, which it reads, and
// changes by whole batches (I5). It knows none of the tables.
type database struct {
	dir    string
	opts   Options
	lock   io.Closer
	space  *space
	gate   *gate
	db     *pebble.DB
	damage atomic.Pointer[DamagedError] // found in the background

	background context.Context // of what Pebble does on its own account: Open's, without its end

	mu       sync.Mutex // held by one writer at a time, and by Close
	closed   bool
	recorder *recorder // of what is written; nil is nobody
	format   int       // of what is saved
}

// newDatabase is one that is still to be opened, in a directory that is owned from now on.
func newDatabase(ctx context.Context, dir string, opts Options) (*database, error) {
	lock, err := opts.claim(dir)
	if err != nil {
		return nil, err
	}
	space := &space{dir: dir, floor: opts.Floor, usage: opts.usage, logger: opts.Logger, stop: make(chan struct{})}
	return &database{dir: dir, opts: opts, lock: lock, space: space, gate: &gate{}, background: context.WithoutCancel(ctx)}, nil
}

// open opens it in a goroutine, since Pebble cannot be interrupted, and has load read what is remembered of it. Exactly
// one of the two sees to the outcome: the goroutine, once ctx has ended.
func (d *database) open(ctx context.Context, load func() error) error {
	done := make(chan error)
	go func() {
		err := d.openNow(load)
		select {
		case done <- err:
		case <-ctx.Done():
			if err == nil {
				_ = d.db.Close() // nobody is left to hear of it
			}
			_ = d.lock.Close()
		}
	}()
	select {
	case err := <-done:
		if err != nil {
			return errors.Join(err, d.lock.Close())
		}
		return nil
	case <-ctx.Done():
		close(d.space.stop)
		return fmt.Errorf("open state %s: the disk did not answer in time: check the volume: %w", d.dir, context.Cause(ctx))
	}
}

func (d *database) openNow(load func() error) error {
	if !d.opts.ReadOnly {
		if err := d.space.check("open"); err != nil {
			return err
		}
	}
	if err := checkFiles(d.dir, d.opts); err != nil {
		return err
	}
	opts := pebbleOptions(d.dir, d.opts, d.space, d.gate)
	opts.EventListener = &pebble.EventListener{DataCorruption: d.reportDamage}
	db, err := pebble.Open(d.dir, opts)
	if err != nil {
		return openError(d.dir, err)
	}
	d.db = db
	if err := inOrder(load, d.mend); err != nil {
		return errors.Join(err, db.Close())
	}
	d.gate.open()
	return nil
}

// reportDamage makes the next write fail: what is damaged would otherwise be found again and again in the background,
// and never be told.
func (d *database) reportDamage(info pebble.DataCorruptionInfo) {
	d.damage.CompareAndSwap(nil, &DamagedError{
		Op: "commit", Dir: d.dir, Err: fmt.Errorf("%s: %w", info.Path, info.Details),
	})
}

// mend makes the files private that an earlier version, a copy or a mount has opened to others.
func (d *database) mend() error {
	if _, real := d.opts.fs.(privateFS); !real || d.opts.ReadOnly {
		return nil
	}
	return mendModes(d.dir, d.opts.Logger)
}

// Close releases the directory. Everything was durable before; where there is space, the log's end is moved into a
// table first, since only there damage can be told from a crash. A second call does nothing.
func (d *database) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	var err error
	if !d.opts.ReadOnly && d.space.check("close") == nil {
		err = d.db.Flush()
	}
	close(d.space.stop)
	// The lock goes last: a directory that Pebble still writes to must not be anybody else's (I10).
	if err = errors.Join(err, d.db.Close(), d.lock.Close()); err != nil {
		return fmt.Errorf("close state %s: %w", d.dir, err)
	}
	return nil
}

// view returns the key's value, which is the caller's until it closes the closer. Without a closer there is none.
func (d *database) view(key []byte) (value []byte, closer io.Closer, err error) {
	value, closer, err = d.db.Get(key)
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		return nil, nil, nil
	case err != nil:
		return nil, nil, d.failed("read", err)
	}
	return value, closer, nil
}

// get returns a copy of the key's value.
func (d *database) get(key []byte) (value []byte, found bool, err error) {
	view, closer, err := d.view(key)
	if err != nil || closer == nil {
		return nil, false, err
	}
	value = append([]byte{}, view...)
	if err := closer.Close(); err != nil {
		return nil, false, d.failed("read", err)
	}
	return value, true, nil
}

// each visits the keys with the prefix, in order. Key and value are valid during the call only.
func (d *database) each(prefix []byte, visit func(key, value []byte) error) error {
	return d.within(prefix, after(prefix), visit)
}

// within visits the keys from one on that are below the other, as each does.
func (d *database) within(from, to []byte, visit func(key, value []byte) error) error {
	iterator, err := d.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return d.failed("read", err)
	}
	for iterator.First(); iterator.Valid(); iterator.Next() {
		if err := visit(iterator.Key(), iterator.Value()); err != nil {
			return errors.Join(err, iterator.Close())
		}
	}
	if err := iterator.Close(); err != nil { // it repeats the error that ended the loop
		return d.failed("read", err)
	}
	return nil
}

// holds says whether there is a key with the prefix.
func (d *database) holds(prefix []byte) (bool, error) {
	err := d.each(prefix, func(_, _ []byte) error { return errEnough })
	if errors.Is(err, errEnough) {
		return true, nil
	}
	return false, err
}

// errEnough ends a visit early.
var errEnough = errors.New("enough")

// write makes what fill writes durable as one batch. A batch with nothing in it costs nothing.
func (d *database) write(fill func(*rows) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fmt.Errorf("commit state %s: it is closed", d.dir)
	}
	if damage := d.damage.Load(); damage != nil {
		return damage
	}
	b := &rows{of: d.db.NewBatch()}
	defer func() { _ = b.of.Close() }() // it only gives memory back
	if b.note(fill(b)); b.err != nil {
		return b.err
	}
	if b.of.Empty() {
		return nil
	}
	if err := d.space.check("commit"); err != nil {
		return err
	}
	changes, err := d.recorder.changes(b.of)
	if err != nil {
		return d.badValue("what is saved", err)
	}
	if err := b.of.Commit(pebble.Sync); err != nil {
		return d.failed("commit", err)
	}
	d.recorder.tell(changes)
	return nil
}

// set writes one value, durably.
func (d *database) set(key, value []byte) error {
	return d.write(func(b *rows) error {
		b.set(key, value)
		return nil
	})
}

// excise deletes a range and gives its space back, which Pebble's DeleteRange leaves to compactions that may never
// come.
func (d *database) excise(from, to []byte) error {
	if err := d.db.Excise(d.background, pebble.KeyRange{Start: from, End: to}); err != nil {
		return d.failed("commit", err)
	}
	return nil
}

// failed explains an error of the open database.
func (d *database) failed(op string, err error) error {
	if pebble.IsCorruptionError(err) {
		return &DamagedError{Op: op, Dir: d.dir, Err: err}
	}
	if errors.Is(err, pebble.ErrReadOnly) {
		return fmt.Errorf("%s state %s: it is open read-only", op, d.dir)
	}
	return fmt.Errorf("%s state %s: %w", op, d.dir, err)
}

func (d *database) badValue(what string, err error) error {
	return &DamagedError{Op: "read", Dir: d.dir, Err: fmt.Errorf("%s: %w", what, err)}
}
