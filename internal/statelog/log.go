package statelog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/sink"
)

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
	Files func() iter.Seq2[string, error]
	File  func(name string) ([]byte, error)
	// Failed is told why the log cannot be written, each time; Written, that it is.
	Failed  func(error)
	Written func()
	// Pace is the least time between two units, in which commits gather; 0 is a tenth of a second.
	Pace time.Duration
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
	finish  chan struct{}
	ended   chan struct{}
}

// New returns a Log that writes nothing yet. It is called before anything changes in the state.
func New(o Options) (*Log, error) {
	if o.Pace == 0 {
		o.Pace = 100 * time.Millisecond
	}
	if o.Grain == (Grain{}) {
		o.Grain = defaultGrain()
	}
	l := &Log{Options: o, self: newChain(), finish: make(chan struct{}), ended: make(chan struct{})}
	if o.Claimed != nil {
		l.self, l.claimed = o.Claimed.by, true
	}
	var err error
	if l.logged, err = o.Store.TakeLogged(l.self[:]); err != nil {
		return nil, fmt.Errorf("read where the log of the state stands: %w", err)
	}
	return l, nil
}

// How long a log that failed is left alone: what only a person can mend, longer.
const (
	again     = time.Second
	permanent = time.Minute
)

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
		var refused *sink.PermanentError
		if IsForGood(err) || errors.As(err, &refused) {
			wait = permanent
		}
		var retry <-chan time.Time
		if refused == nil || !refused.Fenced {
			retry = time.After(wait)
		}
		select {
		case <-retry:
		case <-l.finish:
			return
		case <-ctx.Done():
			return
		}
	}
}

// IsForGood says whether the log is not ours to write, whatever is tried.
func IsForGood(err error) bool {
	var foreign *ForeignError
	var newer *NewerError
	var strange *StrangeError
	var leased *LeaseError
	return errors.As(err, &leased) || errors.As(err, &foreign) || errors.As(err, &newer) || errors.As(err, &strange)
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
	var seen *Survey
	if l.Claimed != nil {
		seen, l.Claimed = l.Claimed.seen, nil
	} else {
		claimed, err := open(ctx, &l.Place, &claim{Bid{Of: l.Of, As: l.As}, l.self, l.claimed})
		if err != nil {
			return nil, err
		}
		seen = claimed.seen
	}
	l.claimed = true
	s := &session{Log: l, writer: newWriter(l.Of, newChain(), seen)}
	s.grain = l.Grain
	if end, ok := seen.end(); ok && l.logged != nil && bytes.Equal(l.logged, end) {
		s.goOn(seen)
		s.whole = true
		l.Queue.logged()
	}
	return s, nil
}
