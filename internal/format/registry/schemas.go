package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/format/typed"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Plan is what a resource's schemas are to be.
type Plan struct {
	Key, Value Registration
	Version    int // the value's newest registered one; 0 is none
	// Differences are those of the API server's type from the registered one.
	Differences []typed.Difference

	older  *typed.Type // of the newest registered version
	merged *typed.Type // of the value
}

// Plan asks what a run would do, and changes nothing. A refused *Error says that the registry would refuse it.
func (s *Schemas) Plan(ctx context.Context, resource *change.Resource) (*Plan, error) {
	of, _, err := s.Types.Of(ctx, *resource, "")
	if err != nil {
		return nil, err
	}
	p, err := s.want(ctx, resource, of, nil)
	if err == nil && p.Key.IsNew() {
		err = s.Client.Compatible(ctx, p.Key.Subject, p.Key.schema)
	}
	if err != nil {
		return nil, err
	}
	if p.older != nil {
		p.Differences = typed.Diff(p.older, encode.ValueType(s.Format, resource, of, s.Columns))
		if p.Value.IsNew() {
			err = s.Client.Compatible(ctx, p.Value.Subject, p.Value.schema)
		}
	}
	return &p, err
}

// errIncompatible says that a registry would refuse a version.
var errIncompatible = errors.New("a new version would be incompatible by the registry's rules: choose another subject or " +
	"topic, or lower the subject's compatibility")

// Compatible returns a refused *Error where the registry would not take the schema as a version of the subject. A
// registry that does not check says nothing.
func (c *Client) Compatible(ctx context.Context, subject string, schema []byte) error {
	doing := "look whether a new version of subject " + subject + " is compatible"
	said, err := c.sr.CheckCompatibility(sr.WithParams(ctx, sr.Verbose), subject, -1, sent(schema))
	switch {
	case isUnknown(err):
		return nil
	case err != nil:
		return explain(doing, err)
	case !said.Is && len(said.Messages) > 0:
		return &Error{Doing: doing, Err: fmt.Errorf("%.500s: %w", strings.Join(said.Messages, "; "), errIncompatible), Refused: true}
	case !said.Is:
		return &Error{Doing: doing, Err: errIncompatible, Refused: true}
	}
	return nil
}

// state is how far a resource's schema is. Only the goroutine of Run has it.
type state struct {
	due       time.Time // when it is to be looked at
	wait      time.Duration
	stamp     string // of the API server's type
	key       Registration
	value     Registration
	confirmed time.Time
}

// Registration is a schema in a subject. Keys that have no schema have no subject.
type Registration struct {
	sink.Schema // whose ID is 0 where it is to be registered
	schema      []byte
}

// IsNew says whether it is to be registered.
func (r *Registration) IsNew() bool { return r.Subject != "" && r.ID == 0 }

// see brings the entry up to date: its ids are confirmed, and its type is the server's. An error leaves the schema that
// there is: it has a place for everything.
func (s *Schemas) see(ctx context.Context, name string, e *entry) error {
	resource, schema := s.at(e)
	if schema != nil && time.Since(e.confirmed) >= confirmEvery {
		same, err := s.confirm(ctx, e)
		if err != nil {
			return err
		}
		if !same {
			s.put(e, nil)
			s.Observer.SchemaReplaced(s.Sink, name, e.value.Schema, e.confirmed)
			e.state, schema = state{}, nil
		}
	}
	of, stamp, err := s.Types.Of(ctx, resource, e.stamp)
	if err != nil && schema != nil {
		return nil // with what is known
	}
	if err == nil && stamp == e.stamp && schema != nil {
		return nil
	}
	p, wantErr := s.want(ctx, &resource, of, err) // where the server does not tell, what is registered has to do
	if wantErr == nil && p.Key.IsNew() {
		wantErr = s.add(ctx, &p.Key, true)
	}
	if wantErr == nil && p.Value.IsNew() {
		wantErr = s.add(ctx, &p.Value, p.older == nil)
	}
	if wantErr != nil {
		return wantErr
	}
	if err == nil {
		e.stamp = stamp
	}
	e.key, e.value, e.confirmed = p.Key, p.Value, time.Now()
	s.put(e, &encode.Schema{Key: p.Key.ID, Value: p.Value.ID, Type: p.merged, Columns: s.Columns})
	return nil
}

// confirm asks the registry whether it still has the very schemas under their ids.
func (s *Schemas) confirm(ctx context.Context, e *entry) (same bool, err error) {
	for _, r := range []Registration{e.key, e.value} {
		if r.Subject == "" {
			continue
		}
		if id, err := s.Client.Find(ctx, r.Subject, r.schema); err != nil || id != r.ID {
			return false, err
		}
	}
	e.confirmed = time.Now()
	return true, nil
}

// want asks what is registered, and registers nothing.
func (s *Schemas) want(ctx context.Context, resource *change.Resource, of *typed.Type, typeErr error) (p Plan, err error) {
	keys, subject := s.Subjects(resource)
	if keys != "" {
		p.Key = Registration{sink.Schema{Subject: keys}, encode.KeySchema(resource)} // which never changes
		if p.Key.ID, err = s.Client.Find(ctx, keys, p.Key.schema); err == nil && p.Key.ID == 0 && !s.Register {
			err = refused(keys, errUnregistered)
		}
		if err != nil {
			return p, err
		}
	}
	latest, err := s.Client.Latest(ctx, subject)
	if err == nil && latest != nil {
		p.Version, p.Value = latest.Version, Registration{sink.Schema{Subject: subject, ID: uint32(latest.ID)}, []byte(latest.Schema.Schema)}
		p.older, err = s.parse(subject, p.Value.schema)
	}
	switch {
	case err != nil:
		return p, err
	case p.older == nil && typeErr != nil:
		return p, typeErr
	case p.older == nil && !s.Register:
		return p, refused(subject, errUnregistered)
	}
	p.merged = p.older
	if typeErr == nil && s.Register {
		p.merged = typed.Merge(p.older, encode.ValueType(s.Format, resource, of, s.Columns))
		if text := p.merged.Avro(); p.older == nil || !bytes.Equal(p.older.Avro(), text) {
			p.Value = Registration{sink.Schema{Subject: subject}, text}
		}
	}
	return p, nil
}

// errOther says whose the newest version of a subject is not.
var errOther = errors.New("its newest version is not the exporter's: choose another kafka.registry.subject, another topic, or delete the subject")

// errNested says that a column keeps its type.
var errNested = errors.New("objects are nested in its newest version, where kafka.registry.columns is json: choose another " +
	"kafka.registry.subject or topic, or delete the subject")

// parse is the type of a registered schema, if that is the exporter's.
func (s *Schemas) parse(subject string, schema []byte) (*typed.Type, error) {
	of, err := typed.ParseAvro(schema)
	switch {
	case err != nil:
		err = fmt.Errorf("%w (%w)", errOther, err)
	case s.Columns && !encode.IsFlat(of):
		err = errNested
	default:
		return of, nil
	}
	return nil, refused(subject, err)
}

// refused is the error of a subject that only a person can mend.
func refused(subject string, err error) error {
	return &Error{Doing: "read subject " + subject, Err: err, Refused: true}
}

// errUnregistered says what to do where the exporter may not register.
var errUnregistered = errors.New("it has no version: register what `exporter schema show` prints with --sink, or set register: true")

// add registers a version.
func (s *Schemas) add(ctx context.Context, r *Registration, first bool) (err error) {
	r.ID, err = s.Client.Register(ctx, r.Subject, r.schema)
	if err == nil && first && s.Compatibility != "" {
		err = s.Client.SetCompatibility(ctx, r.Subject, s.Compatibility)
	}
	return err
}

// note says when the entry is to be looked at again, and tells what came of it.
func (s *Schemas) note(ctx context.Context, name string, e *entry, err error) {
	if ctx.Err() != nil {
		return
	}
	_, schema := s.at(e)
	switch {
	case err == nil:
		e.wait = 0
		e.due = time.Now().Add(min(s.Interval, confirmEvery))
	case isRefused(err):
		e.due = time.Now().Add(seldomRetry)
	default:
		e.wait = min(max(2*e.wait, firstRetry), lastRetry)
		e.due = time.Now().Add(e.wait)
	}
	if schema == nil {
		s.Observer.SchemaWaits(s.Sink, name, err, isRefused(err))
		return
	}
	s.Observer.SchemaKnown(s.Sink, name, e.value.Schema, err)
}

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
	Columns       bool   // of objects are those of a table
	Register      bool   // versions that the registry does not have
	Compatibility string // that a new subject gets; "" leaves it to the registry
	// Interval is between two looks at a type.
	Interval time.Duration
	Observer Observer
	Sink     string // its name
}

// Observer is told what becomes of the schemas of sinks, each under its name. It returns at once, and calls nothing
// back.
type Observer interface {
	// SchemaKnown is told with which schema the resource's records are written, and of what stands against a newer
	// version: nil is nothing.
	SchemaKnown(name, resource string, schema sink.Schema, behind error)
	// SchemaWaits is told that the resource's records wait, and why. For good says that only a person can mend it.
	SchemaWaits(name, resource string, why error, forGood bool)
	// SchemaReplaced is told that the registry does not have the id any more that was confirmed last then.
	SchemaReplaced(name, resource string, schema sink.Schema, confirmed time.Time)
	// SchemaForgotten is told that nothing asks for the resource's schema.
	SchemaForgotten(name, resource string)
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
	asked sink.Bell // there is a new one

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
	return &Schemas{Options: o, asked: sink.NewBell(), known: map[string]*entry{}, changed: make(chan struct{})}
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
		s.asked.Ring()
	}
	e.resource, e.used = *resource, time.Now()
	return e
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
		s.Observer.SchemaForgotten(s.Sink, name)
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
