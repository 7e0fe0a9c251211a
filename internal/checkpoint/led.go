package checkpoint

import (
	"context"
	"errors"
)

// Led is how a state directory stands to the log of the state.
type Led struct {
	Claim  []byte // of the log, with which the state was led last; nil is not known
	Logged []byte // the place that had all of the state when it was closed; nil where the log may lack something
}

// LedAt is how a directory stands to the log of the state. It is false where the directory holds no state, or one that
// is being restored.
func LedAt(ctx context.Context, dir string, opts Options) (led Led, found bool, err error) {
	opts.ReadOnly, opts.Journal = true, nil
	d, err := newDatabase(ctx, dir, opts.withDefaults())
	if err == nil {
		err = d.open(ctx, d.checkFormat)
	}
	if errors.Is(err, ErrNoState) || errors.Is(err, ErrRestoring) {
		return led, false, nil
	}
	if err != nil {
		return led, false, err
	}
	if led.Claim, _, err = d.get(claimedKey()); err == nil {
		led.Logged, _, err = d.get(loggedKey())
	}
	return led, err == nil, errors.Join(err, d.Close())
}
