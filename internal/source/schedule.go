package source

import (
	"context"
	"slices"
	"sync"

	"github.com/kubecdc/kubecdc/internal/change"
)

// schedule is what is due besides watching: reconciles for all sinks, each before the next watch, and snapshots, which
// a reader gives beside it. It ends the watch and the reader where a reconcile is due, and begins to read where a
// snapshot is. It is for any goroutine.
type schedule struct {
	read func(ctx context.Context) // gives the snapshots that are due

	mu         sync.Mutex // guards the following
	reconciles dueQueue
	snapshots  dueQueue
	stopWatch  context.CancelFunc // of the newest watch
	reader     reader
	aside      context.Context // of a reader; nil while none may begin
}

func newSchedule(read func(ctx context.Context)) schedule {
	return schedule{read: read, stopWatch: func() {}}
}

// add makes reconciles and full snapshots due. A reconcile ends the present watch, and the reader, which goes on with
// the next watch.
func (s *schedule) add(wanted ...change.Owed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, owed := range wanted {
		if owed.Reason.Full() {
			s.snapshots.add(owed)
		} else {
			s.reconciles.add(owed)
		}
	}
	if s.reconciles.waits() {
		s.stopWatch()
		s.reader.end()
	}
	s.wakeReader()
}

// isDue says whether a reconcile waits or runs.
func (s *schedule) isDue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.reconciles.isEmpty()
}

// awaits says whether a reconcile of the reason waits.
func (s *schedule) awaits(reason change.Reason) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.reconciles.due, func(o change.Owed) bool { return o.Reason == reason })
}

// begin returns the reconcile that is due first.
func (s *schedule) begin() []change.Owed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reconciles.begin()
}

// done ends the reconcile that begin returned.
func (s *schedule) done(failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reconciles.done(failed)
}

// mayWatch says whether no reconcile is due, and remembers how to end the watch when one becomes due.
func (s *schedule) mayWatch(stop context.CancelFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopWatch = stop
	return s.reconciles.isEmpty()
}

// endWatch ends the watch, and whoever opens the next one finds out why.
func (s *schedule) endWatch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopWatch()
}

// compare makes a comparison the first that is read beside the watch.
func (s *schedule) compare(comparison change.Owed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snapshots.first(comparison)
}

// dropComparison forgets a comparison that did not come to its end.
func (s *schedule) dropComparison() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snapshots.dropComparison()
}

// full are the full snapshots that are not read yet.
func (s *schedule) full() []change.Owed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.snapshots.due)
}

// letRead says that snapshots may be read beside the watch that was opened, for as long as ctx lives.
func (s *schedule) letRead(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aside = ctx
	s.wakeReader()
}

// wakeReader begins to read where a snapshot is due and none is read. The first one waits for the first watch: it must
// not cost the position. The caller holds mu.
func (s *schedule) wakeReader() {
	if s.reader.stop == nil && s.aside != nil && !s.snapshots.isEmpty() {
		s.reader.start(s.aside, s.read)
	}
}

// stopReader returns when nobody reads beside the watch.
func (s *schedule) stopReader() {
	s.mu.Lock()
	s.aside = nil
	s.reader.end()
	over := s.reader.over
	s.mu.Unlock()
	if over != nil {
		<-over
	}
}

// beginRead returns the snapshots that are due first, nil where the reader is over. Until the next ones cut ends them.
func (s *schedule) beginRead(ctx context.Context, cut func()) (owed []change.Owed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() == nil {
		owed = s.snapshots.begin()
	}
	if owed == nil {
		s.reader.stop, cut = nil, nil
	}
	s.reader.cut = cut
	return owed
}

// doneRead ends the snapshots that beginRead returned.
func (s *schedule) doneRead(failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snapshots.done(failed)
}

// withdraw makes full snapshots due no more, and cuts off those that are read with any of them.
func (s *schedule) withdraw(owed []change.Owed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.snapshots.drop(owed) && s.reader.cut != nil {
		s.reader.cut()
	}
}
