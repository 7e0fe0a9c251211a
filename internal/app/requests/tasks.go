package requests

import (
	"context"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/signal"
)

// Tell is as in destination.SignalHandler.
func (h *signalHandler) Tell(_ context.Context, send func(values [][]byte) error) error {
	h.followed = 0
	if h.notes == nil {
		return nil
	}
	told := h.notes.refusals
	next, advanced, err := h.advance(&told)
	if err != nil || len(told) == 0 && !advanced {
		return err
	}
	now := time.Now()
	values := make([][]byte, len(told))
	for i := range told {
		values[i] = told[i].Encode(h.Cluster.Name, now)
	}
	if err := send(values); err != nil {
		return err
	}
	h.notes.refusals = nil
	if !advanced {
		return nil
	}
	return h.save(next)
}

// advance adds what is to be told of tasks, and returns the book in which it is told, and whether that is another one.
func (h *signalHandler) advance(told *[]signal.Notification) (next signal.Book, advanced bool, err error) {
	next = h.book
	if len(next.Tasks) == 0 {
		return next, false, nil
	}
	state, err := h.standing()
	if err != nil {
		return next, false, err
	}
	next.Tasks = nil
	for _, t := range h.book.Tasks {
		after, some, over := t.Advance(state)
		*told = append(*told, some...)
		advanced = advanced || len(some) > 0
		if over {
			delete(h.notes.listed, t.ID)
			continue
		}
		next.Tasks = append(next.Tasks, after)
		if progress, objects := after.Progress(state); h.notes.isDue(t.ID, objects, time.Now()) {
			*told = append(*told, progress)
		}
	}
	return next, advanced, nil
}

// standing says how parts of tasks stand.
func (h *signalHandler) standing() (func(*signal.Part) signal.State, error) {
	owed, err := h.Owing.owed()
	if err != nil {
		return nil, err
	}
	stopped, err := h.Store.StoppedSnapshots()
	if err != nil {
		return nil, err
	}
	states := map[signal.Part]signal.State{}
	for _, o := range owed {
		if o.Sink == h.sink && o.Reason == string(change.Requested) {
			states[signal.Part{Stream: o.Stream, Limits: o.Limits}] = signal.State{Owed: true, Paused: o.State == control.Paused, Objects: o.Objects}
		}
	}
	for i := range stopped {
		if stopped[i].Sink == h.sink && stopped[i].Reason == change.Requested {
			states[signal.Part{Stream: stopped[i].Stream, Limits: stopped[i].Limits}] = signal.State{Stopped: true}
		}
	}
	return func(part *signal.Part) signal.State {
		if known, found := states[signal.Part{Stream: part.Stream, Limits: part.Limits}]; found {
			return known
		}
		return h.delivered(part)
	}, nil
}

// delivered is how a part stands that the sink has to its end.
func (h *signalHandler) delivered(part *signal.Part) signal.State {
	last, found := h.Owing.telemetry.Progress(part.Stream, change.Owed{Sink: h.sink, Reason: change.Requested, Limits: part.Limits})
	if !found || !last.Read {
		return signal.State{}
	}
	return signal.State{Objects: last.Objects, Listed: true}
}
