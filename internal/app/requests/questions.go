package requests

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/app/background"
	"github.com/kubecdc/kubecdc/internal/app/destination"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/sink/signal"
)

// Hear has others ask through the brokers of the sinks that let them, until the returned function is called, which
// waits.
func (h *Handler) Hear(ctx context.Context) (stop func(), err error) {
	var hearers []func(context.Context)
	hearing := map[string]bool{}
	for i := range h.Config.Sinks {
		s := &h.Config.Sinks[i]
		to, err := destination.Of(s, h.Cluster)
		if err != nil {
			return nil, err
		}
		if to.Hearer == nil {
			continue
		}
		d, err := newBrokerHandler(h, s.Name)
		if err != nil {
			return nil, err
		}
		hearer, err := to.Hearer(d.open())
		if err != nil {
			return nil, err
		}
		hearing[s.Name] = true
		hearers = append(hearers, hearer.Run)
	}
	if err := h.forgetHeard(hearing); err != nil {
		return nil, err
	}
	return background.Run(ctx, hearers...), nil
}

// forgetHeard forgets what was heard through the brokers of other sinks. Were it kept, all that is asked until they are
// heard again would be followed then, however old.
func (h *Handler) forgetHeard(but map[string]bool) error {
	saved, err := h.Store.Hearing()
	if err != nil {
		return err
	}
	forgotten := map[string][]byte{}
	for _, name := range saved {
		if !but[name] {
			forgotten[name] = nil
		}
	}
	return h.Store.Commit(checkpoint.Batch{Heard: forgotten})
}

// A question that changes something may have an id.
type (
	snapshotQuestion struct {
		ID string `json:"id,omitempty"`
		control.SnapshotRequest
	}
	steerQuestion struct {
		ID  string   `json:"id,omitempty"`
		IDs []string `json:"ids"` // of snapshots
	}
)

// questions are all, by their names, as the loopback interface takes them, and answered with the same documents.
func (h *brokerHandler) questions() control.Questions {
	all := control.Questions{
		"snapshot": control.Asked(`{"resources":["pods"],"sink":"out","id":"7f2"}, all optional`,
			func(ctx context.Context, asked snapshotQuestion) (*control.Snapshot, error) {
				return h.snapshot(ctx, asked.ID, asked.SnapshotRequest)
			}),
		"checkpoint": control.Shown(func() (*control.State, error) {
			state, err := control.ReadState(h.Store, true)
			if err == nil {
				state.Configurations = nil // they are hashes
			}
			return state, err
		}),
		"list":   control.Shown(func() (*control.OwedList, error) { return h.list() }),
		"status": control.Shown(func() (any, error) { return h.Status(), nil }),
	}
	for _, do := range []string{control.Stop, control.Pause, control.Resume} {
		all[do] = control.Asked(`{"ids":["7mare7x"]}, as list shows them`,
			func(ctx context.Context, asked steerQuestion) (control.SteerRequest, error) {
				request := control.SteerRequest{Do: do, IDs: asked.IDs}
				return request, h.steer(ctx, asked.ID, request)
			})
	}
	return all
}

// open is the handler as those see it who ask.
func (h *brokerHandler) open() *destination.RequestHandler {
	open := Shut()
	for name, ask := range h.questions() {
		open.Questions[name] = func(ctx context.Context, text []byte) ([]byte, error) {
			return h.answer(ctx, name, ask, text)
		}
	}
	open.Signals = func(tells bool) (destination.SignalHandler, string) {
		return newSignalHandler(h, tells), h.book.Place
	}
	open.Hears = func(err error) { h.Told.Hears(h.sink, err) }
	open.Refused = func(name string, err error) { h.Told.Asked(h.sink, name, shortened(err)) }
	return open
}

// Shut is a handler that answers nobody, for a Hearer that does not run. It has the names of all questions, which may
// be forbidden.
func Shut() *destination.RequestHandler {
	shut := &destination.RequestHandler{Questions: map[string]func(context.Context, []byte) ([]byte, error){}}
	for name := range (&brokerHandler{}).questions() {
		shut.Questions[name] = nil
	}
	return shut
}

// answer answers a question in JSON. A snapshot may be asked for without a text. Who only looks is not told of.
func (h *brokerHandler) answer(ctx context.Context, name string, ask control.Question, text []byte) ([]byte, error) {
	if name == "snapshot" && len(text) == 0 {
		text = []byte("{}")
	}
	document, err := ask(ctx, text)
	if changes := slices.Contains([]string{"snapshot", control.Stop, control.Pause, control.Resume}, name); changes {
		h.Told.Asked(h.sink, name, shortened(err))
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(document)
}

// Tell is as in destination.SignalHandler.
func (h *signalHandler) Tell(_ context.Context, send func(values [][]byte) error) error {
	h.followed = 0
	if h.listed == nil {
		return nil
	}
	told := h.refusals
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
	h.refusals = nil
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
			delete(h.listed, t.ID)
			continue
		}
		next.Tasks = append(next.Tasks, after)
		progress, objects := after.Progress(state)
		last := h.listed[t.ID]
		if now := time.Now(); objects != 0 && objects != last.objects && now.Sub(last.time) >= progressPause {
			h.listed[t.ID] = listing{objects, now}
			*told = append(*told, progress)
		}
	}
	return next, advanced, nil
}

// standing says how parts of tasks stand.
func (h *signalHandler) standing() (func(*signal.Part) signal.State, error) {
	owed, err := h.owed()
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
		// The sink has it to its end.
		last, found := h.Progress(part.Stream, change.Owed{Sink: h.sink, Reason: change.Requested, Limits: part.Limits})
		if !found || !last.Read {
			return signal.State{}
		}
		return signal.State{Objects: last.Objects, Listed: true}
	}, nil
}
