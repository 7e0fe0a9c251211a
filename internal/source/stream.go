package source

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// Stream reads one resource, in one namespace or in all, and puts its changes in line. client-go's Reflector runs it:
// the loop of lists and watches, their time limits, 410, 429, very short watches and backoff are the Reflector's own
// rules. What is ours are the ListerWatcher, which lists only where the position cannot be continued, and the decoder.
type Stream struct {
	Config
	stream  change.Stream
	line    Line
	retries *wait.Backoff
	listing sync.WaitGroup // lists that the Reflector no longer waits for
	permit  permit

	server  server
	epoch   string // the history that is read, as of change.NewEpoch
	proof   proof
	refused atomic.Pointer[error] // why the stream is not read any more; nil while it is

	// what the watches that have ended say
	silence silence
	endings endings
	remnant remnant

	schedule schedule
	goesOn   bool // a comparison that an earlier life began goes on, if nothing else comes before it

	turns  turns // guards the following, and proof, while there is a reader
	cursor cursor
	heard  time.Time // when the last record in line was read; zero in a life that had none yet
	begun  int64     // when the newest run began, in ms since 1970: each has its own
	loan   loan      // of the frame that is going in line
	recent recent    // what was told while a snapshot is read
	beside *reading  // nil while none is
}

// push gives the record its shape and puts it in line.
func (s *Stream) push(ctx context.Context, rec *change.Record) error {
	if err := s.shape(rec); err != nil {
		return err
	}
	return s.enter(ctx, rec)
}

// record makes the record of an object.
func (s *Stream) record(op change.Op, object *frame.Object) change.Record {
	rec := change.Record{
		Stream: &s.stream, Op: op,
		Key:             change.Key{Namespace: object.Namespace, Name: object.Name},
		UID:             object.UID,
		ResourceVersion: object.ResourceVersion,
		Object:          object.JSON,
		Received:        time.Now(),
	}
	if op != change.Deleted { // it says who changed the object last, and not who deleted it
		rec.Actor = object.Actor
	}
	if object.Err != nil {
		markUnreadable(&rec)
	}
	return rec
}

// shape makes the record what it is in line.
func (s *Stream) shape(rec *change.Record) error {
	rec.Epoch = s.epoch
	if err := s.recall(rec); err != nil {
		return err
	}
	if s.Shape != nil {
		s.Shape(rec)
		s.loan.shaped(rec)
	}
	s.ignore(rec)
	if s.Involve == nil {
		return nil
	}
	if err := s.Involve(rec); err != nil {
		return fmt.Errorf("look up what %s is about: %w", rec.Key, err)
	}
	return nil
}

// recall gives the record the object as it was delivered last, and has its own kept. A Sync record changes nothing, so
// nothing was before it.
func (s *Stream) recall(rec *change.Record) error {
	if s.Images == nil || !rec.Op.OfObject() {
		return nil
	}
	rec.Keep = true
	if rec.Op == change.Sync {
		return nil
	}
	image, found, err := s.last(rec.Key, rec.UID)
	if found {
		rec.Before = image
	}
	return err
}

// last is what is kept of the object. One with another uid had the name before, and is another object.
func (s *Stream) last(key change.Key, uid string) (object []byte, found bool, err error) {
	image, found, err := s.Images.Last(s.stream.String(), key)
	if err != nil {
		return nil, false, fmt.Errorf("look up the last form of %s in %s: %w", key, s.stream, err)
	}
	return image.Object, found && image.UID == uid, nil
}

// enter tells the observer of the record and puts it in line.
func (s *Stream) enter(ctx context.Context, rec *change.Record) error {
	s.Observer.Received(rec)
	if err := s.line.Push(ctx, rec); err != nil {
		return fmt.Errorf("queue a record of %s: %w", s.stream, err)
	}
	if s.heard = rec.Received; s.heard.IsZero() { // a bookmark
		s.heard = time.Now()
	}
	s.recent.note(rec)
	return nil
}

// drain returns when everything that the stream pushed is delivered and saved.
func (s *Stream) drain(ctx context.Context) error {
	if err := s.line.Drain(ctx, s.stream); err != nil {
		return fmt.Errorf("drain %s: %w", s.stream, err)
	}
	return nil
}

// lookUp returns what the inventory has of the key.
func (s *Stream) lookUp(key change.Key) (entry change.Entry, found bool, err error) {
	if entry, found, err = s.Inventory.Lookup(s.stream.String(), key); err != nil {
		err = fmt.Errorf("look up %s in the inventory of %s: %w", key, s.stream, err)
	}
	return entry, found, err
}

// fail tells the observer, unless the failure is only our own stop.
func (s *Stream) fail(ctx context.Context, err error) {
	s.server.trust.suspect.Store(true)
	if !apierrors.IsTooManyRequests(err) { // as a server says that begins to serve a resource
		s.server.trust.forgetAnswers()
	}
	if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		s.Observer.Failed(s.stream, err)
	}
}

// precedence is the stream's.
func (s *Stream) precedence() precedence {
	switch {
	case isBuiltIn(s.stream.Resource):
		return builtInFirst
	case s.cursor.position.ResourceVersion != "":
		return knownNext
	}
	return othersLast
}

// isBuiltIn says whether the resource's group looks like one of Kubernetes' own: only the order of a start follows from
// it.
func isBuiltIn(resource change.Resource) bool {
	return !strings.Contains(resource.Group, ".") || strings.HasSuffix(resource.Group, ".k8s.io")
}
