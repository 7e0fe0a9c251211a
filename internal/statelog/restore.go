package statelog

import (
	"context"
	"errors"
	"fmt"

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

// Place is where the log is, for people.
func (f *Found) Place() string { return f.place.Name }

// Look finds the newest state that the log holds, and fences nobody. It returns ErrNothing where there is none.
func Look(ctx context.Context, place Place, of Identity) (*Found, error) {
	seen, err := look(ctx, &place)
	if err != nil {
		return nil, fmt.Errorf("read the log of the state, %s: %w", place.Name, err)
	}
	return found(&seen.Survey, place, errors.Join(seen.belongs(of), seen.Close()))
}

// Claimed is a log of which this process is the writer. Nobody has written to it since.
type Claimed struct {
	place Place
	seen  *Survey
	by    chain
}

// Claim makes this process the writer of the log: whoever was so before can write no more, so what is found is the end.
func Claim(ctx context.Context, place Place, of Identity, as Claimant) (*Claimed, error) {
	by := newChain()
	seen, err := open(ctx, &place, &claim{of: of, as: as, by: by})
	if err != nil {
		return nil, errors.Join(err, place.Sink.Close(ctx))
	}
	return &Claimed{place, seen, by}, nil
}

// Found is what the log holds. It returns ErrNothing where that is no state.
func (c *Claimed) Found() (*Found, error) { return found(c.seen, c.place, nil) }

// Before is who was the writer before.
func (c *Claimed) Before() Claimant { return c.seen.claimant }

// End is the place of one who has all that the log holds, false where nobody can go on from there.
func (c *Claimed) End() ([]byte, bool) { return c.seen.end() }

// Close gives up a log that no Log writes.
func (c *Claimed) Close(ctx context.Context) error { return c.place.Sink.Close(ctx) }

func found(seen *Survey, place Place, err error) (*Found, error) {
	at, whole := seen.Range()
	if err == nil && !whole {
		err = ErrNothing
	}
	if err != nil {
		return nil, fmt.Errorf("read the log of the state, %s: %w", place.Name, err)
	}
	return &Found{Range: at, place: place}, nil
}

// Into gives the state to the target, and returns the place in the log that it is of.
func (f *Found) Into(ctx context.Context, to Target) (place []byte, err error) {
	reader, err := f.place.Reader()
	if err != nil {
		return nil, err
	}
	folded := newFold(f.Range, to.Apply)
	err = errors.Join(read(ctx, reader, folded.add), reader.Close())
	if err == nil && !folded.isWhole() {
		err = errMoved
	}
	if err != nil {
		return nil, fmt.Errorf("read the log of the state, %s: %w", f.place.Name, err)
	}
	return placeOf(f.chain, f.to+1), nil
}
