package source

import "context"

// mark is a point behind which all is delivered and saved at some time, while the watch goes on. The zero value is no
// mark.
type mark struct {
	stop  context.CancelFunc
	saved chan error // buffered 1; nil where nobody waits
}

// setMark makes a mark beside the watch that is open, if the one before is saved: a sink that takes nothing holds up no
// snapshot of the others before there is too much to remember.
func (r *reading) setMark(ctx context.Context) error {
	if err := r.leaveRoom(ctx); err != nil {
		return err
	}
	if err := r.turns.awaitWatch(ctx); err != nil {
		return err
	}
	defer r.turns.give()
	r.forgetWaiting()
	r.watch = r.turns.open
	if err := r.settleAll(ctx); err != nil {
		return err
	}
	if saved, err := r.mark.isSaved(); !saved || err != nil {
		return err
	}
	r.recent.next(r.hasPassed)
	draining, stop := context.WithCancel(ctx)
	r.mark = mark{stop: stop, saved: make(chan error, 1)}
	go func(saved chan<- error) { saved <- r.drain(draining) }(r.mark.saved)
	return nil
}

// leaveRoom returns when less is remembered than may be, or when the mark is saved.
func (r *reading) leaveRoom(ctx context.Context) error {
	if full, err := r.isFull(ctx); !full || err != nil {
		return err
	}
	return r.mark.wait()
}

// isFull says whether there is more to remember than may be.
func (r *reading) isFull(ctx context.Context) (bool, error) {
	give, err := r.turns.takeIn(ctx)
	if err != nil {
		return false, err
	}
	defer give()
	return r.recent.isFull(), nil
}

// isSaved says whether all before the mark is saved, or there is none.
func (m *mark) isSaved() (bool, error) {
	if m.saved != nil && len(m.saved) == 0 {
		return false, nil
	}
	return true, m.wait()
}

// wait returns when all before the mark is saved.
func (m *mark) wait() error {
	if m.saved == nil {
		return nil
	}
	err := <-m.saved
	m.stop()
	m.saved = nil
	return err
}

// drop forgets the mark.
func (m *mark) drop() {
	if m.saved != nil {
		m.stop()
		_ = m.wait() // it was stopped
	}
}
