package statelog

import (
	"context"
	"errors"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// ErrNothing says that a log holds no state: nothing was written to it, or no whole state yet.
var ErrNothing = errors.New("it holds no whole state: nothing has written one yet")

// errMoved says that the writer has taken away what was to be read.
var errMoved = errors.New("it was written to faster than it could be read: try again, or stop the exporter that writes it")

// Target takes the state that a log holds.
type Target interface {
	Apply(changes checkpoint.Changes) error
}

// Found is what the log of a state holds.
type Found struct {
	Range
	place Place
}

// End is the place of one who has all of it.
func (f *Found) End() []byte { return f.end() }

// Place is where the log is, for people.
func (f *Found) Place() string { return f.place.Name }

// Found is what the log holds. It returns ErrNothing where that is no state.
func (c *Claimed) Found() (*Found, error) { return found(c.seen, c.place, nil) }

// Look finds the newest state that the log holds, and fences nobody. It returns ErrNothing where there is none, and why
// the log would be refused to the bid.
func Look(ctx context.Context, place Place, bid Bid) (*Found, error) {
	seen, err := look(ctx, &place, nil)
	if err != nil {
		return nil, err
	}
	return found(&seen.Survey, place, errors.Join((&claim{Bid: bid}).judge(seen), seen.Close()))
}

func found(seen *Survey, place Place, err error) (*Found, error) {
	at, whole := seen.Range()
	if err == nil && !whole {
		err = ErrNothing
	}
	if err != nil {
		return nil, reading(&place, err)
	}
	return &Found{Range: at, place: place}, nil
}

// Into gives the state to the target, and returns the place in the log that it is of.
func (f *Found) Into(ctx context.Context, to Target) (place []byte, err error) {
	folded := &fold{of: f.chain, next: f.from, before: f.to + 1, apply: func(changes checkpoint.Changes, _ []byte) error { return to.Apply(changes) }}
	return f.through(ctx, folded)
}

// through reads the log from its beginning into the fold, and returns the place up to which that has all.
func (f *Found) through(ctx context.Context, folded *fold) (place []byte, err error) {
	reader, err := f.place.Reader()
	if err != nil {
		return nil, err
	}
	err = errors.Join(read(ctx, reader, folded.add), reader.Close())
	if err == nil && folded.next <= f.to {
		err = errMoved
	}
	if err != nil {
		return nil, reading(&f.place, err)
	}
	return placeOf(f.chain, folded.next), nil
}
