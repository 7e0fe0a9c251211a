package checkpoint

import (
	"bytes"
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// Page reads about so many bytes of the state from the key on, as changes that make another state have the same
// between the key and the next one, and returns that, nil at the end. It is the state as of one moment, at which begin
// is called: no write comes in between. Where begin says no, nothing is read. A page that begins nowhere is the first.
func (d *database) Page(from []byte, size int, begin func() bool) (page Changes, next []byte, err error) {
	if len(from) == 0 {
		from = []byte{tableRestoring + 1}
	}
	end := []byte{tableFile}
	iterator, err := d.iterate(from, end, begin)
	if err != nil || iterator == nil {
		return nil, from, err
	}
	var rows Changes
	for valid := iterator.First(); valid; valid = iterator.Next() {
		if iterator.Key()[0] == tableSpool && !iterator.SeekGE([]byte{tableSpool + 1}) {
			break
		}
		if len(rows) >= size {
			next = bytes.Clone(iterator.Key())
			break
		}
		rows = rows.Set(iterator.Key(), iterator.Value())
	}
	if err := iterator.Close(); err != nil {
		return nil, nil, d.failed("read", err)
	}
	if next != nil {
		end = next
	}
	return append(Changes(nil).Clear(from, end), rows...), next, nil
}

// iterate begins to read a range while nobody writes.
func (d *database) iterate(from, to []byte, begin func() bool) (*pebble.Iterator, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || !begin() {
		return nil, nil
	}
	iterator, err := d.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return nil, d.failed("read", err)
	}
	return iterator, nil
}

// TakeLogged returns the place in a log of the state that had all of the state when it was closed, and forgets it: what
// is written next may not be there. It is nil where the log may lack something. It notes the claim of the log with
// which the state is led from now on.
func (d *database) TakeLogged(claim []byte) ([]byte, error) {
	place, _, err := d.get(loggedKey())
	if err != nil {
		return nil, err
	}
	return place, d.write(func(b *rows) error {
		b.remove(loggedKey())
		b.set(claimedKey(), claim)
		return nil
	})
}

// forgetLogged forgets the place in a log of the state that has all of it.
func (d *database) forgetLogged() error {
	_, found, err := d.get(loggedKey())
	if err != nil || !found || d.opts.ReadOnly {
		return err
	}
	return d.write(func(b *rows) error {
		b.remove(loggedKey())
		return nil
	})
}

// SetLogged notes that the log of the state has all of it at the place.
func (d *database) SetLogged(place []byte) error { return d.set(loggedKey(), place) }

// Led is how a state directory stands to the log of the state.
type Led struct {
	Claim  []byte // of the log, with which the state was led last; nil is not known
	Logged []byte // the place that had all of the state when it was closed; nil where the log may lack something
}

// LedAt is how a directory stands to the log of the state. It is false where the directory holds no state, or one that
// is being restored.
func LedAt(ctx context.Context, dir string, opts Options) (led Led, found bool, err error) {
	opts.ReadOnly, opts.Journal = true, nil
	store, err := Open(ctx, dir, opts)
	if errors.Is(err, ErrNoState) || errors.Is(err, ErrRestoring) {
		return led, false, nil
	}
	if err != nil {
		return led, false, err
	}
	if led.Claim, _, err = store.get(claimedKey()); err == nil {
		led.Logged, _, err = store.get(loggedKey())
	}
	return led, err == nil, errors.Join(err, store.Close())
}
