package registry

import (
	"context"
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/encode"
	"github.com/kubecdc/kubecdc/internal/typed"
)

// Types tell of the API server's types.
type Types interface {
	// Of is the type of the resource's objects after the rules, nil where the server describes none. The stamp is
	// another one where the type may be another one; with the stamp of before, the type is not made. An error says that
	// the server does not tell now.
	Of(ctx context.Context, resource change.Resource, before string) (of *typed.Type, stamp string, err error)
}

// Options are what schemas are made of, and where they are registered.
type Options struct {
	Client *Client
	Types  Types
	Format string // of the values, one of package encode
	// Subjects are those of the resource's keys and values; "" for keys is that they have no schema.
	Subjects      func(resource *change.Resource) (key, value string)
	Register      bool   // versions that the registry does not have
	Compatibility string // that a new subject gets; "" leaves it to the registry
	// Interval is between two looks at a type.
	Interval time.Duration
	Observer Observer
}

// Observer is told what becomes of schemas. It returns at once and calls nothing back.
type Observer interface {
	// SchemaKnown is told with which schema the resource's records are written, and of what stands against a newer
	// version: nil is nothing.
	SchemaKnown(resource, subject string, id uint32, behind error)
	// SchemaWaits is told that the resource's records wait, and why. For good says that only a person can mend it.
	SchemaWaits(resource string, why error, forGood bool)
	// SchemaReplaced is told that the registry does not have the id any more that was confirmed last then.
	SchemaReplaced(resource, subject string, id uint32, confirmed time.Time)
	// SchemaForgotten is told that nothing asks for the resource's schema.
	SchemaForgotten(resource string)
}

// How often is looked, and how long is waited.
const (
	confirmEvery = 30 * time.Second // that the registry has an id
	firstRetry   = time.Second
	lastRetry    = 15 * time.Second
	seldomRetry  = time.Minute      // what only a person can mend
	forgetAfter  = 10 * time.Minute // a schema that nothing asks for
)

// Schemas are those of the resources of one sink. They may be asked from any goroutine, and answer at once; Run sees to
// them.
type Schemas struct {
	Options
	asked chan struct{} // buffered 1: there is a new one

	mu      sync.Mutex // guards the following
	known   map[string]*entry
	changed chan struct{} // closed and made anew when an answer is another one
}

// entry is what is known of a resource. Only Run's goroutine changes what the lock does not guard.
type entry struct {
	resource change.Resource // as it was asked for last; guarded
	schema   *encode.Schema  // nil: not known; guarded
	used     time.Time       // guarded
	state
}

// NewSchemas knows none yet.
func NewSchemas(o Options) *Schemas {
	return &Schemas{Options: o, asked: make(chan struct{}, 1), known: map[string]*entry{}, changed: make(chan struct{})}
}

// Of is the present schema of the resource, nil where it is not known: then Run is on its way to it.
func (s *Schemas) Of(resource *change.Resource) *encode.Schema {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entry(resource).schema
}

// Admits says whether records of the stream can be encoded.
func (s *Schemas) Admits(stream *change.Stream) bool { return s.Of(&stream.Resource) != nil }

// Changed is closed when an answer may be another one than before it was asked for.
func (s *Schemas) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// entry is the resource's. The caller holds mu.
func (s *Schemas) entry(resource *change.Resource) *entry {
	name := resource.String()
	e := s.known[name]
	if e == nil {
		e = &entry{}
		s.known[name] = e
		signal(s.asked)
	}
	e.resource, e.used = *resource, time.Now()
	return e
}

// signal makes whoever receives of the channel, which is buffered 1, look once more.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run sees to the schemas that are asked for until ctx ends.
func (s *Schemas) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-s.asked:
		case <-ctx.Done():
			return
		}
		timer.Reset(s.round(ctx))
	}
}

// round sees to what is due, and returns when something is due again. Where the registry does not answer, the others
// are not tried before that either: each would wait as long.
func (s *Schemas) round(ctx context.Context) time.Duration {
	next, away := confirmEvery, error(nil)
	due, forgotten := s.due(time.Now())
	for _, name := range forgotten {
		s.Observer.SchemaForgotten(name)
	}
	for name, e := range due {
		if ctx.Err() != nil {
			return next
		}
		err := away
		if err == nil {
			err = s.see(ctx, name, e)
		}
		if isAway(err) {
			away = err
		}
		s.note(ctx, name, e, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.known {
		next = min(next, max(time.Until(e.due), 0))
	}
	return next
}

// due are the entries to look at. Those that nothing asks for are forgotten.
func (s *Schemas) due(now time.Time) (due map[string]*entry, forgotten []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	due = map[string]*entry{}
	for name, e := range s.known {
		switch {
		case now.Sub(e.used) > forgetAfter:
			delete(s.known, name)
			forgotten = append(forgotten, name)
		case !now.Before(e.due):
			due[name] = e
		}
	}
	return due, forgotten
}

// put makes the schema the resource's; nil is none.
func (s *Schemas) put(e *entry, schema *encode.Schema) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.schema = schema
	close(s.changed)
	s.changed = make(chan struct{})
}

// at is the resource of the entry, and its schema.
func (s *Schemas) at(e *entry) (change.Resource, *encode.Schema) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.resource, e.schema
}
