package desk

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/app/destination"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/signal"
)

// mostOwed is how many snapshots may be owed before no more are taken from a broker (I6): whoever may ask there must
// not fill the state.
const mostOwed = 1000

// desk is where those are answered who ask through the broker of one sink. It is of one goroutine.
type desk struct {
	*Clerk
	sink string
	book signal.Book
}

// newDesk reads what the sink's desk remembers.
func newDesk(c *Clerk, sinkName string) (*desk, error) {
	d := &desk{Clerk: c, sink: sinkName}
	return d, d.reread()
}

func (d *desk) reread() error {
	saved, err := d.Store.Heard(d.sink)
	if err == nil {
		d.book, err = signal.ParseBook(saved)
	}
	return err
}

// once does what has the id, unless that was done before. What is done saves with it that it is (I5).
func (d *desk) once(id string, do func(heard map[string][]byte) error) error {
	return d.follow(id, d.book.With(id), do)
}

// follow does what has the id, unless that was done before. What is done saves the next book with it (I5).
func (d *desk) follow(id string, next signal.Book, do func(heard map[string][]byte) error) error {
	switch {
	case len(id) > signal.MaxID:
		return &control.RefusedError{Text: fmt.Sprintf("an id of %d bytes: want %d at most", len(id), signal.MaxID)}
	case d.book.Has(id):
		return &control.RepeatedError{ID: id}
	}
	err := do(map[string][]byte{d.sink: next.Encode()})
	if err == nil {
		d.book = next
		return nil
	}
	return errors.Join(err, d.reread()) // it may be saved all the same
}

// save saves the next book.
func (d *desk) save(next signal.Book) error {
	return d.follow("", next, func(heard map[string][]byte) error {
		return d.Store.Commit(checkpoint.Batch{Heard: heard})
	})
}

// room says whether more may be owed.
func (d *desk) room() error {
	owed, err := d.Store.PendingSnapshots()
	if err == nil && len(owed) >= mostOwed {
		err = &control.RefusedError{Text: fmt.Sprintf("%d snapshots are owed already: ask again when some are delivered", len(owed))}
	}
	return err
}

// snapshot owes what is asked for.
func (d *desk) snapshot(ctx context.Context, id string, asked control.SnapshotRequest) (answer *control.Snapshot, err error) {
	if err := d.room(); err != nil {
		return nil, err
	}
	err = d.once(id, func(heard map[string][]byte) (err error) {
		answer, err = d.owe(ctx, asked, heard)
		return err
	})
	return answer, err
}

// steer stops, pauses or resumes snapshots.
func (d *desk) steer(ctx context.Context, id string, asked control.SteerRequest) error {
	return d.once(id, func(heard map[string][]byte) error { return d.Owing.steer(ctx, asked, heard) })
}

// Hear has others ask through the brokers of the sinks that let them, until the returned function is called, which
// waits.
func (c *Clerk) Hear(ctx context.Context) (stop func(), err error) {
	var hearers []destination.Hearer
	hearing := map[string]bool{}
	for i := range c.Config.Sinks {
		s := &c.Config.Sinks[i]
		to, err := destination.Of(s, c.Cluster)
		if err != nil {
			return nil, err
		}
		if to.Hearer == nil {
			continue
		}
		d, err := newDesk(c, s.Name)
		if err != nil {
			return nil, err
		}
		h, err := to.Hearer(d.open())
		if err != nil {
			return nil, err
		}
		hearing[s.Name] = true
		hearers = append(hearers, h)
	}
	if err := c.forgetHeard(hearing); err != nil {
		return nil, err
	}
	return runAll(ctx, hearers), nil
}

// forgetHeard forgets what was heard through the brokers of other sinks. Were it kept, all that is asked until they are
// heard again would be followed then, however old.
func (c *Clerk) forgetHeard(but map[string]bool) error {
	saved, err := c.Store.Hearing()
	if err != nil {
		return err
	}
	forgotten := map[string][]byte{}
	for _, name := range saved {
		if !but[name] {
			forgotten[name] = nil
		}
	}
	return c.Store.Commit(checkpoint.Batch{Heard: forgotten})
}

// runAll runs the hearers until the returned function is called, which waits.
func runAll(ctx context.Context, hearers []destination.Hearer) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	for _, h := range hearers {
		go func() {
			h.Run(ctx)
			done <- struct{}{}
		}()
	}
	return func() {
		cancel()
		for range hearers {
			<-done
		}
	}
}
