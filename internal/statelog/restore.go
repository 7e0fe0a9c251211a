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

// Claim is Look by who is going to write the log: whoever did so before can write no more, so what is found is the end.
func Claim(ctx context.Context, place Place, of Identity) (*Found, error) {
	seen, err := open(ctx, &place, &claim{of: of, by: newChain()})
	if err != nil {
		return nil, err
	}
	return found(seen, place, place.Sink.Close(ctx))
}

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
