package checkpoint

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// checkFormat reads the format, and writes it into an empty database: a new one, or one whose first start was cut
// short.
func (d *database) checkFormat() error {
	value, found, err := d.get(keyOf(tableFormat))
	if err != nil {
		return err
	}
	if !found {
		restoring, err := d.holds(keyOf(tableRestoring))
		some, failed := d.holds(nil)
		switch {
		case err != nil || failed != nil:
			return errors.Join(err, failed)
		case restoring:
			return ErrRestoring
		case some:
			return fmt.Errorf("open state %s: it holds another program's database: choose another state.dir", d.dir)
		case d.opts.ReadOnly:
			return fmt.Errorf("open state %s: %w", d.dir, ErrNoState)
		}
		if err := d.db.Set(keyOf(tableFormat), []byte(strconv.Itoa(formatVersion)), pebble.Sync); err != nil {
			return d.failed("open", err)
		}
		return nil
	}
	format, err := strconv.Atoi(string(value))
	if err != nil {
		return d.badValue("the format", err)
	}
	if format != formatVersion {
		return &FormatError{Dir: d.dir, Format: format}
	}
	return nil
}

// TakeLogged returns the place where a log of the state had all of it when it was closed, and forgets that: what is
// written next may not be there. The place is nil if the log may lack something. It notes the claim on the log with
// which the state is led from now on.
func (d *database) TakeLogged(claim []byte) ([]byte, error) {
	place, _, err := d.get(keyOf(tableLogged))
	if err != nil {
		return nil, err
	}
	return place, d.write(func(b *rows) error {
		b.remove(keyOf(tableLogged))
		b.set(keyOf(tableLogged, "c"), claim)
		return nil
	})
}

// record begins to tell the journal. Without a journal, it forgets that the log has all of the state: later writes will
// not be in it.
func (d *database) record() error {
	d.recording = d.opts.Journal != nil
	_, found, err := d.get(keyOf(tableLogged))
	if err != nil || !found || d.opts.ReadOnly || d.recording {
		return err
	}
	return d.write(func(b *rows) error { b.remove(keyOf(tableLogged)); return nil })
}

// SetLogged notes that the log of the state has all of it up to the place.
func (d *database) SetLogged(place []byte) error { return d.set(keyOf(tableLogged), place) }

// Page reads about size bytes of the state from the key on, or from the beginning. page makes another state have the
// same keys and values between from and next, which is nil at the end. It is as of one moment, at which begin is
// called: no write comes in between. If begin returns false, nothing is read, and next is from.
func (d *database) Page(from []byte, size int, begin func() bool) (page Changes, next []byte, err error) {
	if len(from) == 0 {
		from = []byte{tableRestoring + 1}
	}
	end := []byte{tableFile}
	var view *pebble.Snapshot
	d.mu.Lock()
	if isOpen := !d.closed && begin(); isOpen {
		view = d.db.NewSnapshot()
	}
	d.mu.Unlock()
	if view == nil {
		return nil, from, nil
	}
	defer func() { _ = view.Close() }() // it never fails
	var rows Changes
	err = d.iterate(view, from, end, func(at *pebble.Iterator) bool {
		switch {
		case !isLogged(at.Key()):
			return at.SeekGE([]byte{at.Key()[0] + 1})
		case len(rows) >= size:
			next = bytes.Clone(at.Key())
			return false
		}
		rows = rows.Set(at.Key(), at.Value())
		return at.Next()
	})
	if err != nil {
		return nil, nil, err
	}
	if next != nil {
		end = next
	}
	return append(Changes(nil).Clear(from, end), rows...), next, nil
}

// database is Pebble's database in a directory that this process owns (I10). It reads keys and values, and changes them
// by whole batches (I5).
type database struct {
	dir    string
	opts   Options
	lock   io.Closer
	space  *space
	gate   *gate
	db     *pebble.DB
	damage atomic.Pointer[DamagedError] // found in the background

	background context.Context // Open's, which does not end: for Pebble's own work

	mu        sync.Mutex // held by one writer at a time, and by Close
	closed    bool
	recording bool // the journal is told of what is written
}

// newDatabase returns a database that is still to be opened, in a directory that this process owns from now on.
func newDatabase(ctx context.Context, dir string, opts Options) (*database, error) {
	lock, err := opts.claim(dir)
	if err != nil {
		return nil, err
	}
	space := &space{dir: dir, floor: opts.Floor, usage: opts.usage, logger: opts.Logger, stop: make(chan struct{})}
	return &database{dir: dir, opts: opts, lock: lock, space: space, gate: newGate(), background: context.WithoutCancel(ctx)}, nil
}

// open opens it in a goroutine, since Pebble cannot be interrupted, and calls load, which reads what is kept in memory.
// If ctx ends first, open returns, and the goroutine closes what it has opened.
func (d *database) open(ctx context.Context, load func() error) error {
	done := make(chan error)
	go func() {
		err := d.openNow(load)
		select {
		case done <- err:
		case <-ctx.Done():
			if err == nil {
				_ = d.db.Close() // nobody is left to take the error
			}
			_ = d.lock.Close() // nor this one
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
	err = load()
	// Files that an earlier version, a copy or a mount has opened to others are made private.
	if _, real := d.opts.fs.(privateFS); err == nil && real && !d.opts.ReadOnly {
		err = mendModes(d.dir, d.opts.Logger)
	}
	if err != nil {
		return errors.Join(err, db.Close())
	}
	d.gate.open()
	return nil
}

// reportDamage makes the next write fail: otherwise the damage would be found again and again in the background, and
// never be reported.
func (d *database) reportDamage(info pebble.DataCorruptionInfo) {
	d.damage.CompareAndSwap(nil, &DamagedError{
		Op: "commit", Dir: d.dir, Err: fmt.Errorf("%s: %w", info.Path, info.Details),
	})
}

// Close releases the directory. Everything is durable already. If there is space, the end of Pebble's log becomes a
// table first, since only in tables damage can be told from a crash. A second call does nothing.
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

// get returns a copy of the key's value.
func (d *database) get(key []byte) (value []byte, found bool, err error) {
	view, closer, err := d.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err == nil {
		value = append([]byte{}, view...)
		err = closer.Close()
	}
	if err != nil {
		return nil, false, d.failed("read", err)
	}
	return value, true, nil
}

// each visits the keys with the prefix, in order. Key and value are valid during the call only.
func (d *database) each(prefix []byte, visit func(key, value []byte) error) (err error) {
	return errors.Join(d.iterate(d.db, prefix, after(prefix), func(at *pebble.Iterator) bool {
		err = visit(at.Key(), at.Value())
		return err == nil && at.Next()
	}), err)
}

// iterate visits the keys from one up to another, without that. visit moves the iterator, and returns whether it is at
// a key.
func (d *database) iterate(view pebble.Reader, from, to []byte, visit func(at *pebble.Iterator) bool) error {
	iterator, err := view.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return d.failed("read", err)
	}
	for valid := iterator.First(); valid; valid = visit(iterator) {
	}
	if err := iterator.Close(); err != nil { // it repeats the error that ended the loop
		return d.failed("read", err)
	}
	return nil
}

// holds says whether there is a key with the prefix.
func (d *database) holds(prefix []byte) (found bool, err error) {
	err = d.iterate(d.db, prefix, after(prefix), func(*pebble.Iterator) bool { found = true; return false })
	return found, err
}

// read parses the key's value; found is false if there is none. what describes it in an error.
func read[T any](d *database, key []byte, what string, parse func([]byte) (T, error)) (is T, found bool, err error) {
	value, found, err := d.get(key)
	if err != nil || !found {
		return is, false, err
	}
	if is, err = parse(value); err != nil {
		return is, false, d.badValue(what, err)
	}
	return is, true, nil
}

// byName are the parsed values of a table whose keys are names, by name.
func byName[T any](d *database, table byte, what string, parse func(value []byte) (T, error)) (map[string]T, error) {
	all := map[string]T{}
	err := d.each([]byte{table}, func(key, value []byte) (err error) {
		if all[string(key[1:])], err = parse(value); err != nil {
			err = d.badValue(what, err)
		}
		return err
	})
	return all, err
}

// parseNumber is the inverse of binary.AppendUvarint; an empty value is 0.
func parseNumber(value []byte) (uint64, error) {
	number, width := binary.Uvarint(value)
	if width != len(value) {
		return 0, errValue
	}
	return number, nil
}

// names are the keys of the table, sorted.
func (d *database) names(table byte) (all []string, err error) {
	err = d.each([]byte{table}, func(key, _ []byte) error { all = append(all, string(key[1:])); return nil })
	return all, err
}

// write makes what fill writes durable as one batch. An empty batch costs nothing.
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
	var changes Changes
	if d.recording {
		var err error
		if changes, err = changesOf(b.of); err != nil {
			return d.badValue("what is saved", err)
		}
	}
	if err := b.of.Commit(pebble.Sync); err != nil {
		return d.failed("commit", err)
	}
	if d.recording {
		d.opts.Journal.Record(changes)
	}
	return nil
}

// set writes one value, durably, unless the key has it already.
func (d *database) set(key, value []byte) error {
	known, found, err := d.get(key)
	if err != nil || found && bytes.Equal(known, value) {
		return err
	}
	return d.write(func(b *rows) error { b.set(key, value); return nil })
}

// removeAll removes the keys with the prefix, durably.
func (d *database) removeAll(prefix []byte) error {
	return d.write(func(b *rows) error { b.removeAll(prefix); return nil })
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

// rows are the batch of one write, which becomes durable as a whole. After an error, which they remember, nothing is
// written.
type rows struct {
	of  *pebble.Batch
	err error

	key, value []byte // buffers for fill: set and remove copy them
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
