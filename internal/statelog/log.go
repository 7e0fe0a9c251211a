package statelog

import (
	"fmt"
	"iter"
	"time"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
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
	proofs  chan chan<- error
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
