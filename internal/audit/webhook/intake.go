package webhook

import (
	"context"
	"crypto/sha256"
	"io"
	"time"

	"github.com/kubecdc/kubecdc/internal/audit"
	"github.com/kubecdc/kubecdc/internal/change"
)

// Line is where records are put. *pipeline.Inlet is one.
type Line interface {
	Push(ctx context.Context, rec *change.Record) error
	Drain(ctx context.Context, stream change.Stream) error
}

// Sink is one that is told who asked for changes.
type Sink struct {
	Name  string
	Wants func(*change.Stream) bool // the objects' stream; nil is all
}

// Config is what becomes of what is received.
type Config struct {
	Sinks []Sink
	// Find finds the stream that the objects of the resource in the namespace are of; false is that none is.
	Find     func(group, resource, namespace string) (audit.Object, bool)
	Observer Observer
}

// Observer is told what becomes of events and requests. Its functions return at once.
type Observer struct {
	Event   func(outcome string)
	Refused func(reason string, err error)
	Missing func(id string) // of a write whose end the API server has not told
}

// intake puts records in line, one request after the other.
type intake struct {
	Config
	line  Line
	turn  chan struct{} // holds one token while somebody pushes: a stream is pushed by one at a time (I3)
	told  recent        // guarded by the turn
	begun *unfinished
}

func newIntake(config Config, line Line) *intake {
	return &intake{Config: config, line: line, turn: make(chan struct{}, 1), told: newRecent(remembered), begun: newUnfinished(remembered)}
}

const (
	remembered = 1 << 16 // records that are not put in line again
	group      = 256     // records that are put in line together
	groupBytes = 1 << 20 // and their bytes, about
)

// take puts the records of the batch in line, and returns when they are delivered and saved.
func (i *intake) take(ctx context.Context, body io.Reader, large func(context.Context) (func(), error)) error {
	var waiting []*change.Record
	bytes := 0
	push := func() error {
		err := i.push(ctx, waiting)
		clear(waiting)
		waiting, bytes = waiting[:0], 0
		return err
	}
	err := newFramer(body, large).each(ctx, func(text []byte) error {
		for _, rec := range i.read(text) {
			waiting, bytes = append(waiting, rec), bytes+rec.Size()
			if len(waiting) < group && bytes < groupBytes {
				continue
			}
			if err := push(); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = push()
	}
	if err == nil {
		err = i.line.Drain(ctx, change.Actors())
	}
	return err
}

// read is what the sinks are told of the event; nil is one that is too large. What cannot be read says nothing: were
// the batch refused for it, a tenant's body could keep the events of others out.
func (i *intake) read(text []byte) []*change.Record {
	e, err := audit.Parse(text)
	if text == nil || err != nil {
		i.Observer.Event(string(audit.Unknown))
		return nil
	}
	for _, id := range i.begun.take(e) {
		i.Observer.Missing(id)
	}
	return i.records(e)
}

// records are what the sinks are told of the event.
func (i *intake) records(e *audit.Event) (records []*change.Record) {
	answers, outcome := audit.Judge(e)
	if outcome != audit.Told {
		i.Observer.Event(string(outcome))
		return nil
	}
	for _, answer := range answers {
		of, streamed := i.Find(answer.Group, answer.Resource, answer.Key.Namespace)
		if !streamed {
			i.Observer.Event(notStreamed)
			continue
		}
		told, ok := i.recordsOf(e, answer, of)
		switch {
		case !ok:
			i.Observer.Event(string(audit.Unknown))
		case len(told) == 0:
			i.Observer.Event(notStreamed)
		default:
			i.Observer.Event(string(answer.Certainty))
		}
		records = append(records, told...)
	}
	return records
}

// Outcomes are all that an Observer may be told of an event.
func Outcomes() []string {
	return []string{
		string(audit.Proven), string(audit.Likely), string(audit.Possible),
		string(audit.Unchanged), string(audit.Ignored), string(audit.Unknown), notStreamed, lost,
	}
}

const (
	notStreamed = "notstreamed" // the outcome of an event of an object that no sink is told of
	lost        = "missing"     // that of the end of a write which is not told
)

// recordsOf are those of one answer, one for each sink that is told. It is not ok where they would be too large.
func (i *intake) recordsOf(e *audit.Event, answer audit.Answer, of audit.Object) (records []*change.Record, ok bool) {
	for _, s := range i.Sinks {
		if s.Wants != nil && !s.Wants(of.Stream) {
			continue
		}
		rec, fits := e.Record(answer, of, s.Name)
		if !fits {
			return nil, false
		}
		rec.Received = time.Now()
		records = append(records, rec)
	}
	return records, true
}

// push puts the records in line that are not there yet.
func (i *intake) push(ctx context.Context, records []*change.Record) error {
	select {
	case i.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-i.turn }()
	for _, rec := range records {
		id := idOf(rec)
		if i.told.has(id) {
			continue
		}
		if err := i.line.Push(ctx, rec); err != nil {
			return err
		}
		i.told.add(id)
	}
	return nil
}

// digest is a record's id and its sink.
type digest [16]byte

func idOf(rec *change.Record) digest {
	sum := sha256.Sum256(append(append(rec.AppendID(nil, ""), 0), rec.Sink...))
	return digest(sum[:len(digest{})])
}

// recent are the newest digests.
type recent struct {
	known map[digest]struct{}
	ring  []digest
	next  int
	most  int
}

func newRecent(most int) recent { return recent{known: map[digest]struct{}{}, most: most} }

func (r *recent) has(d digest) bool {
	_, has := r.known[d]
	return has
}

func (r *recent) add(d digest) {
	r.known[d] = struct{}{}
	if len(r.ring) < r.most {
		r.ring = append(r.ring, d)
		return
	}
	delete(r.known, r.ring[r.next])
	r.ring[r.next] = d
	r.next = (r.next + 1) % r.most
}
