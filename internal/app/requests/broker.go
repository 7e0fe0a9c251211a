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

func (h *brokerHandler) reread() error {
	saved, err := h.Store.Heard(h.sink)
	if err == nil {
		h.book, err = signal.ParseBook(saved)
	}
	return err
}

// once does what has the id, unless that was done before. What is done saves with it that it is (I5).
func (h *brokerHandler) once(id string, do func(heard map[string][]byte) error) error {
	return h.follow(id, h.book.With(id), do)
}

// follow does what has the id, unless that was done before. What is done saves the next book with it (I5).
func (h *brokerHandler) follow(id string, next signal.Book, do func(heard map[string][]byte) error) error {
	switch {
	case len(id) > signal.MaxID:
		return &control.RefusedError{Text: fmt.Sprintf("an id of %d bytes: want %d at most", len(id), signal.MaxID)}
	case h.book.Has(id):
		return &control.RepeatedError{ID: id}
	}
	err := do(map[string][]byte{h.sink: next.Encode()})
	if err == nil {
		h.book = next
		return nil
	}
	return errors.Join(err, h.reread()) // it may be saved all the same
}

// save saves the next book.
func (h *brokerHandler) save(next signal.Book) error {
	return h.follow("", next, func(heard map[string][]byte) error {
		return h.Store.Commit(checkpoint.Batch{Heard: heard})
	})
}

// room says whether more may be owed.
func (h *brokerHandler) room() error {
	owed, err := h.Store.PendingSnapshots()
	if err == nil && len(owed) >= mostOwed {
		err = &control.RefusedError{Text: fmt.Sprintf("%d snapshots are owed already: ask again when some are delivered", len(owed))}
	}
	return err
}

// snapshot owes what is asked for.
func (h *brokerHandler) snapshot(ctx context.Context, id string, asked control.SnapshotRequest) (answer *control.Snapshot, err error) {
	if err := h.room(); err != nil {
		return nil, err
	}
	err = h.once(id, func(heard map[string][]byte) (err error) {
		answer, err = h.owe(ctx, asked, heard)
		return err
	})
	return answer, err
}

// steer stops, pauses or resumes snapshots.
func (h *brokerHandler) steer(ctx context.Context, id string, asked control.SteerRequest) error {
	return h.once(id, func(heard map[string][]byte) error { return h.Owing.steer(ctx, asked, heard) })
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
