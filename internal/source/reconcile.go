package source

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// pageSize is how many objects one page of a list holds at most; client-go's pager asks for as many.
const pageSize = 500

// maxRestarts is how often one reconcile starts over when its pages expire, before the Reflector's backoff has its
// turn.
const maxRestarts = 5

// reconcile brings the sinks to the server's present state and emits exactly the difference. It is the one answer to
// everything that interrupts a stream. Where the history is the same, it begins here and goes on beside the watch
// (comparison.go). Another history is compared as a whole, before the next watch:
//
//	drain the line, list at one version, merge with the inventory, emit everything between begin and end
//
// It may be interrupted anywhere: what was acknowledged until then is in the inventory.
func (s *Stream) reconcile(ctx context.Context, owed change.Owed) error {
	s.recent.end()
	if s.beside = nil; owed.Reason.Beside() {
		return s.compareAll(ctx, owed)
	}
	s.schedule.dropComparison()
	for range maxRestarts {
		err := s.versions.ended(s.reconcileOnce(ctx, owed))
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errUnsorted):
			s.unsorted.Store(true) // for good: this server does not sort
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
	exactly, err := s.serverVersion(ctx)
	if err != nil {
		return err
	}
	run := s.newRun([]change.Owed{owed}, exactly, s.line.SinkOnly(s.stream))
	defer run.inventory.close()
	run.left = s.interrupted()
	if run.left.ResourceVersion != "" {
		run.left.Epoch = change.Interrupted // it is another epoch until it is compared
	}
	if err := run.begin(ctx); err != nil {
		return err
	}
	// That the inventory is not true of the position any more is saved before any difference is told: the next life
	// might continue at the position, behind differences that it does not know of (I3), and once a restored server has
	// overtaken the position nobody can tell its history from the old one (I4).
	if err := s.drain(ctx); err != nil {
		return err
	}
	if err := run.list(ctx); err != nil {
		s.trust.forgetAnswers()                   // the server may have another version, or none of this one
		return errors.Join(err, run.release(ctx)) // what is held was compared, and would be found again
	}
	return nil
}

// drain returns when everything that the stream pushed is delivered and saved.
func (s *Stream) drain(ctx context.Context) error {
	if err := s.line.Drain(ctx, s.stream); err != nil {
		return fmt.Errorf("drain %s: %w", s.stream, err)
	}
	return nil
}

// interrupted is the position while a reconcile is under way that no watch goes on beside. The inventory comes ahead of
// it, piece by piece, and nothing is true of it any more.
func (s *Stream) interrupted() change.Position {
	if s.cursor.position.ResourceVersion == "" {
		return s.cursor.position
	}
	return s.cursor.position.Interrupt()
}

// list compares the whole list, page by page.
func (r *run) list(ctx context.Context) error {
	p := page{limit: pageSize, exactly: r.snapshot.ResourceVersion}
	for {
		n := 0
		meta, err := r.collection.list(ctx, p, func(object frame.Object) error { n++; return r.listed(ctx, &object) })
		if err != nil {
			return err
		}
		r.tellListed(n, &meta)
		if p.token, p.limit = meta.Continue, pageSize; p.token == "" {
			return r.end(ctx)
		}
		if err := r.proveOrder(ctx, p.token); err != nil {
			return err
		}
	}
}
