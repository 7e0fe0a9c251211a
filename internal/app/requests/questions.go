package requests

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/kubecdc/kubecdc/internal/app/destination"
	"github.com/kubecdc/kubecdc/internal/control"
)

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

// question is what may be asked, as the loopback interface takes it, and answered with the same document.
type question func(ctx context.Context, text []byte) (any, error)

// questions are all, by their names.
func (h *brokerHandler) questions() map[string]question {
	all := map[string]question{
		"snapshot": func(ctx context.Context, text []byte) (any, error) {
			var asked snapshotQuestion
			if len(text) > 0 {
				if err := control.Decode(bytes.NewReader(text), &asked, `{"resources":["pods"],"sink":"out","id":"7f2"}, all optional`); err != nil {
					return nil, err
				}
			}
			return h.snapshot(ctx, asked.ID, asked.SnapshotRequest)
		},
		"list":       func(context.Context, []byte) (any, error) { return h.Owing.list() },
		"checkpoint": func(context.Context, []byte) (any, error) { return control.ReadState(h.Store) },
		"status":     func(context.Context, []byte) (any, error) { return h.Status(), nil },
	}
	for _, do := range []string{control.Stop, control.Pause, control.Resume} {
		all[do] = func(ctx context.Context, text []byte) (any, error) {
			var asked steerQuestion
			if err := control.Decode(bytes.NewReader(text), &asked, `{"ids":["7mare7x"]}, as list shows them`); err != nil {
				return nil, err
			}
			request := control.SteerRequest{Do: do, IDs: asked.IDs}
			return request, h.steer(ctx, asked.ID, request)
		}
	}
	return all
}

// open is the handler as those see it who ask.
func (h *brokerHandler) open() *destination.RequestHandler {
	open := &destination.RequestHandler{
		Questions: map[string]func(context.Context, []byte) ([]byte, error){},
		Signals:   func(tells bool) (destination.SignalHandler, string) { return newSignalHandler(h, tells), h.book.Place },
		Hears:     func(err error) { h.Told.Hears(h.sink, err) },
		Refused:   func(name string, err error) { h.Told.Asked(h.sink, name, shortened(err)) },
		Noticed:   func(text string) { h.Told.Noticed(h.sink, text) },
	}
	for name, ask := range h.questions() {
		open.Questions[name] = func(ctx context.Context, text []byte) ([]byte, error) { return h.answer(ctx, name, ask, text) }
	}
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

// answer answers a question in JSON. Who only looks is not told of.
func (h *brokerHandler) answer(ctx context.Context, name string, ask question, text []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, AskTime)
	defer cancel()
	document, err := ask(ctx, text)
	if changes := slices.Contains([]string{"snapshot", control.Stop, control.Pause, control.Resume}, name); changes {
		h.Told.Asked(h.sink, name, shortened(err))
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(document)
}
