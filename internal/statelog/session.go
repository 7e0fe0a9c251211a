package statelog

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// session writes the log from when it was opened until it fails.
type session struct {
	*Log
	*writer
	claim   part     // the newest, as it was written
	whole   bool     // a reader of the chain finds a whole segment
	segment *segment // under way; nil is none
	last    bool     // nothing changes any more, and what is left is written
}

// segment is how far the pages of one are.
type segment struct {
	began bool
	from  []byte // the next page begins there
	rows  bool   // all pages of rows are written
	names func() (string, error, bool)
	stop  func()
	files *filePage // that was read and not written; nil is none
}

// filePage is some files.
type filePage struct {
	changes checkpoint.Changes
	last    bool
}

// end gives up what reads the names.
func (g *segment) end() {
	if g != nil && g.stop != nil {
		g.stop()
	}
}

// run writes what waits, and waits for more. It returns nil when it has finished.
func (s *session) run(ctx context.Context) error {
	defer func() { s.segment.end() }()
	for finish := s.finish; ; {
		if s.last {
			s.leaveSegment()
			finish = nil
		}
		wrote, err := s.step(ctx)
		if err != nil {
			return err
		}
		if s.last && !(wrote && s.segment != nil) && s.Queue.isIdle() {
			return s.close()
		}
		if err := s.await(ctx, finish, wrote); err != nil {
			return err
		}
	}
}

// await returns when another unit may be due: pages at once, changes in a while, or when there are any. Meanwhile it
// proves what it is asked to.
func (s *session) await(ctx context.Context, finish <-chan struct{}, wrote bool) error {
	var due <-chan time.Time
	wake := s.Queue.wake
	switch {
	case wrote && (s.segment != nil || s.last):
		due = time.After(0)
	case wrote:
		due, wake = time.After(s.Pace), nil
	}
	select {
	case <-finish: // before any page
		s.last = true
		return nil
	default:
	}
	select {
	case <-due:
	case <-wake:
	case answer := <-s.proofs:
		err := s.prove(ctx)
		answer <- err
		return err
	case <-finish:
		s.last = true
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// leaveSegment gives up the segment under way, without which the log has everything. Whoever leads next need not wait
// for it, and begins one of its own.
func (s *session) leaveSegment() {
	if s.whole {
		s.segment.end()
		s.segment = nil
	}
}

// close notes that the log has all of the state, where that is so.
func (s *session) close() error {
	if !s.whole || s.segment != nil || s.Queue.IsBehind() {
		return nil
	}
	return s.Store.SetLogged(s.place())
}

// step writes one unit, where there is something to write.
func (s *session) step(ctx context.Context) (wrote bool, err error) {
	u, ok, err := s.next()
	if err != nil || !ok {
		return false, err
	}
	parts := s.cut(u)
	messages := make([]sink.Message, len(parts))
	for i := range parts {
		messages[i] = s.Place.message(&parts[i])
	}
	if _, err := s.Place.Sink.Write(ctx, messages); err != nil {
		return false, fmt.Errorf("write the log of the state, %s: %w", s.Place.Name, err)
	}
	if u.flags&closes != 0 {
		s.closed()
		s.segment.end()
		s.whole, s.segment = true, nil
	}
	if s.whole {
		s.Queue.logged()
		s.Written()
	}
	return true, nil
}

// next is the next unit, false where there is none now.
func (s *session) next() (*unit, bool, error) {
	if s.segment == nil && (!s.whole || s.isDue() && !s.last) {
		s.segment = &segment{}
	}
	if s.segment == nil {
		t, lost := s.Queue.take(false)
		if lost {
			s.restart()
			return s.next()
		}
		return &unit{changes: t.changes, saved: t.saved}, len(t.changes) > 0, nil
	}
	if s.segment.rows {
		return s.nextFiles()
	}
	return s.nextRows()
}

// restart begins another chain, since some changes are not in this one.
func (s *session) restart() {
	s.segment.end()
	s.renew(newChain())
	s.whole, s.segment = false, &segment{}
}

// nextRows is a unit with a page of rows. The page is as of after the changes.
func (s *session) nextRows() (*unit, bool, error) {
	var t taken
	lost := false
	page, next, err := s.Store.Page(s.segment.from, s.grain.Page, func() bool {
		t, lost = s.Queue.take(!s.segment.began && !s.whole)
		return !lost
	})
	switch {
	case err != nil:
		return nil, false, err
	case lost:
		s.restart()
		return s.next()
	case page == nil: // it is closed
		return nil, false, nil
	}
	u := &unit{changes: append(t.changes, page...), saved: t.saved}
	if !s.segment.began {
		u.flags, s.segment.began = opens, true
	}
	s.segment.from, s.segment.rows = next, next == nil
	return u, true, nil
}

// nextFiles is a unit with some files. Changes follow them, since a file may have been read before it changed.
func (s *session) nextFiles() (u *unit, ok bool, err error) {
	if s.segment.files == nil {
		if s.segment.files, err = s.readFiles(); err != nil {
			return nil, false, err
		}
	}
	t, lost := s.Queue.take(false)
	if lost {
		s.restart()
		return s.next()
	}
	page := s.segment.files
	u = &unit{changes: append(page.changes, t.changes...), saved: t.saved}
	if s.segment.files = nil; page.last {
		u.flags = closes
	}
	return u, true, nil
}

// readFiles reads some files.
func (s *session) readFiles() (*filePage, error) {
	g, page := s.segment, &filePage{}
	if g.names == nil {
		g.names, g.stop = iter.Pull2(s.Files())
		page.changes = page.changes.Clear(checkpoint.FileRange())
	}
	for len(page.changes) < s.grain.Page {
		name, err, found := g.names()
		if page.last = !found; err != nil || !found {
			return page, err
		}
		content, err := s.File(name)
		if err != nil {
			return nil, err
		}
		if content != nil {
			page.changes = page.changes.Set(checkpoint.FileKey(name), content)
		}
	}
	return page, nil
}

// prove writes the claim once more. It has an id of its own, so that the sink takes no earlier one for it.
func (s *session) prove(ctx context.Context) error {
	s.claim.unit++
	s.claim.saved = time.Now()
	if _, err := s.Place.Sink.Write(ctx, []sink.Message{s.Place.message(&s.claim)}); err != nil {
		return fmt.Errorf("write the log of the state, %s: %w", s.Place.Name, err)
	}
	return nil
}
