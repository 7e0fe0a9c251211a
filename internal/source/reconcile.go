package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// pageSize is how many objects one page of a list holds at most; client-go's pager asks for as many.
const pageSize = 500

// maxRestarts is how often one reconcile starts over when its pages expire, before the Reflector's backoff has its
// turn.
const maxRestarts = 5

// reconcile brings the sinks to the server's present state and emits exactly the difference. It is the one answer to
// everything that interrupts a stream: the initial snapshot is a reconcile against an empty inventory.
//
//	drain the line, list at one version, merge with the inventory, emit the difference between begin and end
//
// It may be interrupted anywhere: what was acknowledged until then is in the inventory and is not emitted again. A full
// snapshot goes on behind what its sink acknowledged.
func (s *Stream) reconcile(ctx context.Context, due []change.Owed) error {
	initial := due[0].Reason == change.Initial
	if initial {
		if goesOn, err := s.beginInitial(ctx); err != nil || !goesOn {
			return err
		}
	}
	for range maxRestarts {
		exactly := ""
		if due[0].Reason.Exact() {
			exactly = s.cursor.position.ResourceVersion
		}
		err := s.countInexact(s.reconcileOnce(ctx, due, exactly))
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errUnsorted):
			s.unsorted.Store(true) // for good: this server does not sort
		case !isGone(err):
			return err
		case initial:
			s.enqueue(change.Owed{Reason: change.Gone}) // what was changed since the snapshot began may be missing
			return nil
		}
	}
	return fmt.Errorf("reconcile %s: its pages expired %d times: the list takes longer than the server keeps its history", s.stream, maxRestarts)
}

// reconcileOnce is one attempt. The list is of exactly one version, known before its first object: the given one, so
// that no change after it is skipped, or with "" the server's present one.
func (s *Stream) reconcileOnce(ctx context.Context, due []change.Owed, exactly string) error {
	if err := s.drain(ctx); err != nil {
		return err
	}
	if exactly == "" {
		now, err := s.serverVersion(ctx)
		if err != nil {
			return err
		}
		exactly = now
	}
	// No watch will bring those again that are older than the list. Others come when it goes on behind the list.
	sinkOnly := slices.DeleteFunc(s.line.SinkOnly(s.stream), func(g change.SinkOnly) bool {
		return !g.Undeleted && due[0].Reason.Exact() && change.CompareVersions(g.ResourceVersion, exactly) > 0
	})
	run := s.newRun(due, exactly, sinkOnly)
	defer run.inventory.close()
	if err := run.begin(ctx); err != nil {
		return err
	}
	// That the inventory is not true of the position any more is saved before any difference is told: the next life
	// might continue at the position, behind differences that it does not know of (I3), and once a restored server has
	// overtaken the position nobody can tell its history from the old one (I4).
	if !due[0].Reason.Exact() {
		if err := s.drain(ctx); err != nil {
			return err
		}
	}
	if err := run.list(ctx); err != nil {
		s.forgetAnswers()                         // the server may have another version, or none of this one
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

// beginInitial saves the version of the initial snapshot before anything is told of it, so that it goes on at that
// version after every interruption, in this life or another: what is changed from here on is told or announced (I4). It
// goes on no more where something else is due for all sinks, such as another epoch, which compares everything from that
// version on.
func (s *Stream) beginInitial(ctx context.Context) (goesOn bool, err error) {
	if s.cursor.position.ResourceVersion != "" {
		return !s.isSuperseded(), nil
	}
	version, err := s.serverVersion(ctx)
	if err != nil {
		return false, err
	}
	position := change.InitialPosition(version, s.epoch, s.selection.String())
	err = s.push(ctx, &change.Record{Stream: &s.stream, Op: change.Bookmark, ResourceVersion: version, Position: position})
	if err != nil {
		return false, err
	}
	s.cursor.restart(position)
	return true, s.drain(ctx)
}

// list compares the whole list, page by page.
func (r *run) list(ctx context.Context) error {
	p := page{limit: pageSize, exactly: r.snapshot.ResourceVersion}
	for {
		n := 0
		meta, err := r.Client.list(ctx, r.Stream, p, func(object frame.Object) error { n++; return r.listed(ctx, &object) })
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

// serverVersion asks where the server stands, by a list of one object.
func (s *Stream) serverVersion(ctx context.Context) (string, error) {
	if s.stands() {
		return s.standing, nil
	}
	asked := time.Now()
	version, err := s.askVersion(ctx)
	if version != "" {
		s.standing, s.stood = version, asked
	}
	return version, err
}

// askVersion asks the server, whatever it said before.
func (s *Stream) askVersion(ctx context.Context) (string, error) {
	var first *frame.Object
	meta, err := s.Client.list(ctx, s, page{limit: 1}, func(object frame.Object) error { first = &object; return nil })
	switch {
	case err != nil:
		return "", fmt.Errorf("ask the server for the version of %s: %w", s.stream, err)
	case !change.IsVersion(meta.ResourceVersion):
		return "", s.unordered("its list has the resourceVersion %.40q", meta.ResourceVersion)
	case first != nil:
		err = s.checkVersion(first, meta.ResourceVersion)
	}
	return meta.ResourceVersion, err
}
