package requests

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/signal"
)

// mostOwed is how many snapshots may be owed before no more are taken from a broker (I6): whoever may ask there must
// not fill the state.
const mostOwed = 1000

// brokerHandler answers those who ask through the broker of one sink. It is of one goroutine.
type brokerHandler struct {
	*Handler
	sink string
	book signal.Book
}

// newBrokerHandler reads what the handler remembers.
func newBrokerHandler(c *Handler, sinkName string) (*brokerHandler, error) {
	d := &brokerHandler{Handler: c, sink: sinkName}
	return d, d.reread()
}

func (d *brokerHandler) reread() error {
	saved, err := d.Store.Heard(d.sink)
	if err == nil {
		d.book, err = signal.ParseBook(saved)
	}
	return err
}

// once does what has the id, unless that was done before. What is done saves with it that it is (I5).
func (d *brokerHandler) once(id string, do func(heard map[string][]byte) error) error {
	return d.follow(id, d.book.With(id), do)
}

// follow does what has the id, unless that was done before. What is done saves the next book with it (I5).
func (d *brokerHandler) follow(id string, next signal.Book, do func(heard map[string][]byte) error) error {
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
func (d *brokerHandler) save(next signal.Book) error {
	return d.follow("", next, func(heard map[string][]byte) error {
		return d.Store.Commit(checkpoint.Batch{Heard: heard})
	})
}

// room says whether more may be owed.
func (d *brokerHandler) room() error {
	owed, err := d.Store.PendingSnapshots()
	if err == nil && len(owed) >= mostOwed {
		err = &control.RefusedError{Text: fmt.Sprintf("%d snapshots are owed already: ask again when some are delivered", len(owed))}
	}
	return err
}

// snapshot owes what is asked for.
func (d *brokerHandler) snapshot(ctx context.Context, id string, asked control.SnapshotRequest) (answer *control.Snapshot, err error) {
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
func (d *brokerHandler) steer(ctx context.Context, id string, asked control.SteerRequest) error {
	return d.once(id, func(heard map[string][]byte) error { return d.Owing.steer(ctx, asked, heard) })
}

// maxTold is how many bytes of an error the log is told: it may name what others have made up.
const maxTold = 500

// shortened is the error with as much of its text as the log has; nil is none.
func shortened(err error) error {
	if err == nil || len(err.Error()) <= maxTold {
		return err
	}
	return &control.RefusedError{Text: strings.ToValidUTF8(err.Error()[:maxTold], "") + "..."}
}
