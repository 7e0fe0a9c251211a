package statelog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// How long a log that failed is left alone: what only a person can mend, longer.
const (
	again     = time.Second
	permanent = time.Minute
)

// pace is the least time between two units, in which commits gather.
const pace = 100 * time.Millisecond

// Run writes until ctx ends, or until Finish has been called and everything is written. A log that cannot be written
// is opened again, unless another exporter writes it now.
func (l *Log) Run(ctx context.Context) {
	defer close(l.ended)
	for {
		err := l.live(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		l.logged = nil
		l.Failed(err)
		wait := again
		if IsForGood(err) || errors.As(err, new(*sink.PermanentError)) {
			wait = permanent
		}
		var retry <-chan time.Time
		if !sink.IsFenced(err) {
			retry = time.After(wait)
		}
		if !l.rest(ctx, retry, err) {
			return
		}
	}
}

// rest waits until the log that failed is to be tried again, false where it is not. Nothing can be proven meanwhile.
func (l *Log) rest(ctx context.Context, retry <-chan time.Time, cause error) bool {
	for {
		select {
		case <-retry:
			return true
		case answer := <-l.proofs:
			answer <- cause
		case <-l.finish:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// Finish makes Run return when everything is written, and waits for that until ctx ends. It is called when nothing
// changes in the state any more.
func (l *Log) Finish(ctx context.Context) {
	close(l.finish)
	select {
	case <-l.ended:
	case <-ctx.Done():
	}
}

// Wait returns when Run has.
func (l *Log) Wait() { <-l.ended }

// live opens the log and writes. It returns nil when it has finished.
func (l *Log) live(ctx context.Context) error {
	s, err := l.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = l.Place.Sink.Close(context.WithoutCancel(ctx)) }() // everything is durable, or counts for nothing
	return s.run(ctx)
}

// begin opens the log.
func (l *Log) begin(ctx context.Context) (*session, error) {
	claimed := l.Claimed
	if l.Claimed = nil; claimed == nil {
		var err error
		if claimed, err = open(ctx, &l.Place, &Bid{Of: l.Of, As: l.As, by: l.self, again: l.claimed}); err != nil {
			return nil, err
		}
	}
	l.claimed = true
	seen := claimed.seen
	s := &session{Log: l, chain: newChain(), seen: seen, claim: claimed.claim}
	s.release()
	if end, ok := seen.end(); ok && l.logged != nil && bytes.Equal(l.logged, end) {
		s.chain, s.unit, s.whole = seen.now.chain, seen.now.next, true
		l.Queue.logged()
	}
	return s, nil
}

// session writes the log from when it was opened until it fails.
type session struct {
	*Log
	claim   part     // the newest, as it was written
	whole   bool     // a reader of the chain finds a whole segment
	segment *segment // under way; nil is none
	last    bool     // nothing changes any more, and what is left is written

	chain chain
	unit  uint64   // the next one
	seen  *Survey  // of the log, with what this session has written
	free  []uint32 // slots that nobody needs, oldest first
}

// isDue says whether another segment is to begin: what came since the last one is as large as its pages.
func (s *session) isDue() bool { return s.seen.now.since > max(s.seen.now.segment, s.Grain.Since) }

// cut makes the parts of the unit. Where it completes a segment, what is before that is not needed any more once they
// are in the log: nothing is cut before.
func (s *session) cut(u *unit) []part {
	contents := s2.Encode(nil, u.changes)
	parts := make([]part, (len(contents)+s.Grain.Part-1)/s.Grain.Part)
	for i := range parts {
		size := min(s.Grain.Part, len(contents))
		parts[i] = part{
			of: s.Of, chain: s.chain, unit: s.unit, number: i, parts: len(parts), flags: u.flags, slot: s.take(), saved: u.saved,
			contents: contents[:size],
		}
		contents = contents[size:]
		s.seen.add(&parts[i])
	}
	s.unit++
	if u.flags&closes != 0 {
		s.release()
	}
	return parts
}

// take is a slot that nobody needs.
func (s *session) take() (slot uint32) {
	if len(s.free) == 0 {
		return s.seen.slots
	}
	slot, s.free = s.free[0], s.free[1:]
	return slot
}

// release frees the slots of parts that no reader needs.
func (s *session) release() {
	used := map[uint32]bool{}
	for _, slot := range s.free {
		used[slot] = true
	}
	for _, l := range s.seen.found().live {
		used[l.slot] = true
	}
	for slot := range s.seen.slots {
		if !used[slot] {
			s.free = append(s.free, slot)
		}
	}
}

// segment is how far the pages of one are.
type segment struct {
	began  bool
	from   []byte // the next page begins there
	rows   bool   // all pages of rows are written
	listed bool   // the files are
	names  []string
}

// run writes what waits, and waits for more. It returns nil when it has finished.
func (s *session) run(ctx context.Context) error {
	for finish := s.finish; ; {
		if s.last {
			finish = nil
		}
		if s.last && s.whole {
			// The log has everything without the segment under way. Whoever leads next need not wait for it, and begins
			// one of its own.
			s.segment = nil
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
		due, wake = time.After(pace), nil
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

// close notes that the log has all of the state, where that is so.
func (s *session) close() error {
	if !s.whole || s.segment != nil || s.Queue.IsBehind() {
		return nil
	}
	return s.Store.SetLogged(placeOf(s.chain, s.unit))
}

// step writes one unit, where there is something to write.
func (s *session) step(ctx context.Context) (wrote bool, err error) {
	u, err := s.next()
	if err != nil || u == nil {
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
		s.whole, s.segment = true, nil
	}
	if s.whole {
		s.Queue.logged()
		s.Written()
	}
	return true, nil
}

// next is the next unit, nil where there is none now. Where some changes are not in this chain, another one begins.
func (s *session) next() (u *unit, err error) {
	if s.segment == nil && (!s.whole || s.isDue() && !s.last) {
		s.segment = &segment{}
	}
	var lost bool
	switch {
	case s.segment == nil:
		if u, lost = s.Queue.take(false); len(u.changes) == 0 {
			u = nil
		}
	case s.segment.rows:
		u, lost, err = s.nextFiles()
	default:
		u, lost, err = s.nextRows()
	}
	if !lost {
		return u, err
	}
	s.chain, s.unit = newChain(), 0
	s.whole, s.segment = false, &segment{}
	return s.next()
}

// nextRows is a unit with a page of rows. The page is as of after the changes.
func (s *session) nextRows() (u *unit, lost bool, err error) {
	page, next, err := s.Store.Page(s.segment.from, s.Grain.Page, func() bool {
		u, lost = s.Queue.take(!s.segment.began && !s.whole)
		return !lost
	})
	if err != nil || lost || page == nil { // it is closed
		return nil, lost, err
	}
	u.changes = append(u.changes, page...)
	if !s.segment.began {
		u.flags, s.segment.began = opens, true
	}
	s.segment.from, s.segment.rows = next, next == nil
	return u, false, nil
}

// nextFiles is a unit with some files. Changes follow them, since a file may have been read before it changed.
func (s *session) nextFiles() (u *unit, lost bool, err error) {
	g := s.segment
	var files checkpoint.Changes
	if !g.listed {
		if g.names, err = s.Files(); err != nil {
			return nil, false, err
		}
		g.listed = true
		files = files.Clear(checkpoint.FileRange())
	}
	for len(g.names) > 0 && len(files) < s.Grain.Page {
		content, err := s.File(g.names[0])
		if err != nil {
			return nil, false, err
		}
		if content != nil {
			files = files.Set(checkpoint.FileKey(g.names[0]), content)
		}
		g.names = g.names[1:]
	}
	if u, lost = s.Queue.take(false); lost {
		return nil, true, nil
	}
	u.changes = append(files, u.changes...)
	if len(g.names) == 0 {
		u.flags = closes
	}
	return u, false, nil
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

// proving is how long a proof may take.
const proving = 10 * time.Second

// Prove returns nil when the log has taken a write that was begun since the call: so long nobody else had claimed it.
// It returns a *sink.PermanentError with Fenced where somebody had, and then Run tells Failed so, too. Any other error
// says nothing about who leads, and is of no kind that a caller could take for an error of its own. Any goroutine may
// call it while Run runs.
func (l *Log) Prove(ctx context.Context) error {
	silent := fmt.Errorf("the log of the state has taken no write for %s: it is tried again", proving)
	bounded, cancel := context.WithTimeoutCause(ctx, proving, silent)
	defer cancel()
	answer := make(chan error, 1)
	var err error
	select {
	case l.proofs <- answer:
		select {
		case err = <-answer:
		case <-bounded.Done():
			err = context.Cause(bounded)
		}
	case <-l.ended:
		err = errors.New("the log of the state is not written any more")
	case <-bounded.Done():
		err = context.Cause(bounded)
	}
	switch {
	case err == nil:
		return nil
	case sink.IsFenced(err):
		return fmt.Errorf("prove that this exporter still leads: %w", err)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("prove that this exporter still leads: %v", err)
}

// Grain is how finely the log is cut, in bytes.
type Grain struct {
	Part  int // of a unit in one message: below the limits that brokers have by default
	Page  int // of the rows of a page, about
	Since int // of changes below which no segment begins
}

// Options are what a Log is made of.
type Options struct {
	Place Place
	Of    Identity
	As    Claimant
	// Claimed is the log where this process is its writer already; nil is that it becomes so with Run.
	Claimed *Claimed
	Store   Store
	Queue   *Queue
	// Files are the names of those that belong to the state beside the store, and File reads one; nil is that it is
	// gone.
	Files func() ([]string, error)
	File  func(name string) ([]byte, error)
	// Failed is told why the log cannot be written, each time; Written, that it is.
	Failed  func(error)
	Written func()
	// Grain is how finely the log is cut; the zero value is the usual.
	Grain Grain
}

// Store is the state of which the log is.
type Store interface {
	Page(from []byte, size int, begin func() bool) (page checkpoint.Changes, next []byte, err error)
	TakeLogged(claim []byte) ([]byte, error)
	SetLogged(place []byte) error
}

// Log writes the state into its log. Run is for one goroutine.
type Log struct {
	Options
	self    chain  // says in claims who writes
	logged  []byte // the place at which the log had all of the state when this process began; nil is none
	claimed bool   // it has been the writer
	proofs  chan chan<- error
	finish  chan struct{}
	ended   chan struct{}
}

// New returns a Log that writes nothing yet. It is called before anything changes in the state.
func New(o Options) (*Log, error) {
	if o.Grain == (Grain{}) {
		o.Grain = Grain{Part: 256 << 10, Page: 512 << 10, Since: 4 << 20}
	}
	l := &Log{Options: o, self: newChain(), proofs: make(chan chan<- error), finish: make(chan struct{}), ended: make(chan struct{})}
	if o.Claimed != nil {
		l.self, l.claimed = o.Claimed.claim.chain, true
	}
	var err error
	if l.logged, err = o.Store.TakeLogged(l.self[:]); err != nil {
		return nil, fmt.Errorf("read where the log of the state stands: %w", err)
	}
	return l, nil
}
