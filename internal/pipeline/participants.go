package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/line"
)

// participants are who takes part in a run: sources, line, listeners.
type participants struct {
	*Config
	line      *line.Line
	listeners []*listener
	stops     *delivery.Stops
	sourceMu  sync.Mutex // guards Sources, and the turns of the resyncer
}

// sources are all streams at this moment.
func (p *participants) sources() []Source {
	p.sourceMu.Lock()
	defer p.sourceMu.Unlock()
	return slices.Clone(p.Sources)
}

// listenerOf is the sink's listener, nil where it is not configured.
func (p *participants) listenerOf(sinkName string) *listener {
	at := slices.IndexFunc(p.listeners, func(l *listener) bool { return l.Name == sinkName })
	if at < 0 {
		return nil
	}
	return p.listeners[at]
}

// shape decides whether a record goes on that a listener makes, as the stream's source decides it of its own.
func (p *participants) shape(rec *change.Record) {
	for _, s := range p.sources() {
		if s.Shape != nil && s.Stream.String() == rec.Stream.String() {
			s.Shape(rec)
		}
	}
}

func (p *participants) closeSinks(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.StopTimeout)
	defer cancel()
	var errs []error
	for _, l := range p.listeners {
		if err := l.Target.Close(ctx); err != nil {
			errs = append(errs, fmt.Errorf("close sink %s: %w", l.Name, err))
		}
	}
	return errors.Join(errs...)
}

// due are the full snapshots that the streams were asked for in this life and that are not read yet.
func (p *participants) due() (due []checkpoint.PendingSnapshot) {
	for _, s := range p.sources() {
		if s.Due == nil {
			continue
		}
		for _, owed := range s.Due() {
			due = append(due, checkpoint.PendingSnapshot{Stream: s.Stream.String(), Owed: owed})
		}
	}
	return due
}

// leavesBeside makes the listener miss the stream, whose records would wait for it.
func (p *participants) leavesBeside(l *listener) {
	if p.Beside != nil {
		l.Seat.Miss(p.Beside.Stream.String())
	}
}

// takesBeside gives the stream to a listener whose sink is in line.
func (p *participants) takesBeside(l *listener) {
	if p.Beside != nil {
		l.Seat.Take(p.Beside.Stream.String())
	}
}
