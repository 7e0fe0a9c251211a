package listener

import (
	"errors"
	"sync"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// Stops are the sinks that are stopped at the moment.
type Stops struct {
	mu     sync.Mutex
	causes []error // by listener; nil is one that goes on
}

// NewStops are those of so many sinks, of which none is stopped.
func NewStops(sinks int) *Stops { return &Stops{causes: make([]error, sinks)} }

// Cause is why the listener's sink is stopped.
func (s *Stops) Cause(listener int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.causes[listener]
}

// endError ends the run: every sink is stopped, or one was opened too early.
type endError struct{ error }

func (e *endError) Unwrap() error { return e.error }

// IsLate says whether the run has ended since a sink was opened too early. Another run begins where this one has saved.
func IsLate(err error) bool {
	var late *sink.LateError
	return errors.As(err, &late)
}

// IsEnd is the error if it ends the run, and nil for one that only says that the run ends.
func IsEnd(err error) error {
	if end := new(endError); errors.As(err, &end) {
		return end
	}
	return nil
}

// Stop notes why the listener's sink is stopped. It returns an *endError with all causes where no other is left.
func (s *Stops) Stop(listener int, cause error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.causes[listener] = cause
	for _, cause := range s.causes {
		if cause == nil {
			return nil
		}
	}
	return &endError{errors.Join(s.causes...)}
}

// Resume notes that the listener's sink is open again.
func (s *Stops) Resume(listener int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.causes[listener] = nil
}
