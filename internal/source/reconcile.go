package source

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/change"
)

// reconcile brings the sinks to the server's present state and emits exactly the difference. It is the one answer to
// everything that interrupts a stream. Where the history is the same, it begins here and goes on beside the watch
// (comparison.go). Another history is compared as a whole, before the next watch:
//
//	drain the line, list at one version, merge with the inventory, emit everything between begin and end
//
// It may be interrupted anywhere: what was acknowledged until then is in the inventory.
func (s *Stream) reconcile(ctx context.Context, owed change.Owed) error {
	if s.alone(); owed.Reason.Beside() {
		return s.compareAll(ctx, owed)
	}
	s.schedule.dropComparison()
	for range maxRestarts {
		err := s.origin.versions.ended(s.reconcileOnce(ctx, owed))
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errUnsorted):
			s.origin.unsorted.Store(true) // for good: this server does not sort
		case !isGone(err):
			return err
		}
	}
	return fmt.Errorf("reconcile %s: its pages expired %d times: the list takes longer than the server keeps its history", s.stream, maxRestarts)
}

// reconcileOnce is one attempt. The list is of exactly one version, the server's present one, known before its first
// object.
func (s *Stream) reconcileOnce(ctx context.Context, owed change.Owed) error {
	if err := s.drain(ctx); err != nil {
		return err
	}
	exactly, err := s.origin.present(ctx)
	if err != nil {
		return err
	}
	r := s.newRelist(owed, exactly, s.line.SinkOnly(s.stream))
	defer r.inventory.close()
	if r.left.ResourceVersion != "" {
		r.left.Epoch = change.Interrupted // it is another epoch until it is compared
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	// That the inventory is not true of the position any more is saved before any difference is told: the next life
	// might continue at the position, after differences that it does not know of (I3), and once a restored server has
	// overtaken the position nobody can tell its history from the old one (I4).
	if err := s.drain(ctx); err != nil {
		return err
	}
	if err := r.list(ctx); err != nil {
		s.origin.trust.forgetAnswers()          // the server may have another version, or none of this one
		return errors.Join(err, r.release(ctx)) // what is held was compared, and would be found again
	}
	return nil
}
