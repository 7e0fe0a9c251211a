package requests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/telemetry"
)

// Snapshots are the full snapshots of this run, as people are told of them.
type Snapshots struct {
	store     *checkpoint.Store
	telemetry *telemetry.Telemetry
	Orders    chan pipeline.Order

	mu   sync.Mutex // guards the following
	last []control.Stopped
}

// NewSnapshots are those of a run.
func NewSnapshots(store *checkpoint.Store, t *telemetry.Telemetry) *Snapshots {
	return &Snapshots{store: store, telemetry: t, Orders: make(chan pipeline.Order)}
}

// mostStopped is how many stopped snapshots are remembered for those who wait for them.
const mostStopped = 1000

// list is what is owed, and what was stopped last.
func (s *Snapshots) list() (*control.OwedList, error) {
	owed, err := s.owed()
	s.mu.Lock()
	defer s.mu.Unlock()
	return &control.OwedList{Owed: owed, Stopped: slices.Clone(s.last)}, err
}

// steer has the pipeline stop, pause or resume snapshots. What was heard through a sink's broker is saved with the
// order.
func (s *Snapshots) steer(ctx context.Context, asked control.SteerRequest, heard map[string][]byte) error {
	do, known := map[string]checkpoint.Steering{
		control.Stop: checkpoint.Stop, control.Pause: checkpoint.Pause, control.Resume: checkpoint.Resume,
	}[asked.Do]
	if !known || len(asked.IDs) == 0 {
		return &control.RefusedError{Text: fmt.Sprintf("%q of %d snapshots: want stop, pause or resume of one at least", asked.Do, len(asked.IDs))}
	}
	before, err := s.owed()
	if err != nil {
		return err
	}
	answer := make(chan error, 1)
	err = handOver(ctx, s.Orders, pipeline.Order{Do: do, IDs: asked.IDs, Heard: heard, Answer: answer}, answer)
	var refused *pipeline.OrderError
	if errors.As(err, &refused) {
		return &control.RefusedError{Text: refused.Text}
	}
	if err == nil && do == checkpoint.Stop {
		s.noteStopped(before, asked.IDs)
	}
	return err
}

func (s *Snapshots) noteStopped(before []control.Owed, ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range before {
		if slices.ContainsFunc(ids, func(id string) bool { return strings.EqualFold(id, o.ID) }) {
			s.last = append(s.last, control.Stopped{Owed: o, Time: time.Now()})
		}
	}
	s.last = s.last[max(0, len(s.last)-mostStopped):]
}

// handOver gives the pipeline what it is asked, and waits for the answer, which comes for all that was taken: who gave
// up before would not know what is done.
func handOver[T any](ctx context.Context, to chan<- T, asked T, answer <-chan error) error {
	select {
	case to <- asked:
	case <-ctx.Done():
		return control.ErrNotStreaming
	}
	return <-answer
}

// owed are those that are owed, with how far each is.
func (s *Snapshots) owed() ([]control.Owed, error) {
	owed, err := control.ReadOwed(s.store)
	if err != nil {
		return nil, err
	}
	for i := range owed {
		s.measure(&owed[i])
	}
	return owed, nil
}

func (s *Snapshots) measure(o *control.Owed) {
	progress, found := s.telemetry.Progress(o.Stream, change.Owed{Sink: o.Sink, Reason: change.Reason(o.Reason), Limits: o.Limits})
	switch {
	case o.State == control.Paused:
		return
	case !found:
		o.State = control.Waits
		return
	case progress.Read:
		o.State = control.Delivers
	default:
		o.State = control.Reads
	}
	o.Objects, o.Percent = progress.Objects, progress.Percent
}
