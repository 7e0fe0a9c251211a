package source

import (
	"context"
	"errors"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// neighbour is the watch that a snapshot is read beside, as its reader sees it.
type neighbour struct {
	out    *output
	least  time.Duration // how long a watch is silent that has nothing to tell
	number int           // of the watch that the page is read beside
	floods int           // those of what was told recently, when the list was asked for
	silent bool          // the watch has had nothing to tell for long enough
}

// stand is where the watch stood.
type stand struct {
	watch    int
	position change.Position
}

// stand is where the watch stands. The caller has the turn.
func (n *neighbour) stand() stand { return stand{n.out.turns.open, n.out.cursor.position} }

// errWatchEnded says that the watch has ended that a page was compared beside. What the next server says may be of
// another history, so the page is read again.
var errWatchEnded = errors.New("the watch has ended that the snapshot was read beside")

// errTooRecent says that more was changed since the mark than may be remembered (I6).
var errTooRecent = errors.New("too much was changed while the snapshot was read")

// check says what the page that is being compared is worth: nothing once another watch is open, or more was told than
// may be remembered. The caller has the turn.
func (n *neighbour) check() error {
	switch {
	case n.out.turns.open != n.number:
		return errWatchEnded
	case n.out.recent.isFull() || n.out.recent.floods != n.floods:
		return errTooRecent
	}
	return nil
}

// aside gives the turn away while it waits, and checks the page then.
func (n *neighbour) aside(ctx context.Context, wait func(context.Context) error) error {
	n.out.turns.give()
	err := wait(ctx)
	n.out.turns.take()
	if err != nil {
		return err
	}
	return n.check()
}

// reached says whether the watch has told all that happened up to the version.
func (n *neighbour) reached(version string) bool {
	return n.out.cursor.reached(version) || n.silent
}

// await returns when the watch may have moved. One that has been silent for long has nothing to tell any more of what
// was before the list: the server that listed could read its etcd.
func (n *neighbour) await(ctx context.Context, at stand) error {
	silence := time.NewTimer(n.least)
	defer silence.Stop()
	select {
	case <-n.out.turns.moved:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-silence.C:
	}
	give, err := n.out.turns.takeIn(ctx)
	if err != nil {
		return err
	}
	defer give()
	n.silent = at.watch != 0 && at == n.stand()
	return nil
}

// remembered says whether there is more to remember than may be, and how often all was forgotten that was told.
func (n *neighbour) remembered(ctx context.Context) (full bool, floods int, err error) {
	give, err := n.out.turns.takeIn(ctx)
	if err != nil {
		return false, 0, err
	}
	defer give()
	return n.out.recent.isFull(), n.out.recent.floods, nil
}
