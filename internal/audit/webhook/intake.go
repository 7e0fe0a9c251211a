package webhook

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/semaphore"

	"github.com/kubecdc/kubecdc/internal/audit"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/scan"
)

// Line is where records are put. *pipeline.Inlet is one.
type Line interface {
	Push(ctx context.Context, rec *change.Record) error
	Drain(ctx context.Context) error
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
	over  context.Context                  // until it ends, this takes what comes
	turn  *semaphore.Weighted              // of whoever pushes: a stream is pushed by one at a time (I3)
	told  *simplelru.LRU[digest, struct{}] // the newest; guarded by the turn
	begun *unfinished
}

func newIntake(over context.Context, config Config, line Line) *intake {
	told, _ := simplelru.NewLRU[digest, struct{}](remembered, nil) // of a size above 0 it cannot fail
	return &intake{Config: config, line: line, over: over, turn: semaphore.NewWeighted(1), told: told, begun: newUnfinished(remembered)}
}

const (
	remembered = 1 << 16 // records that are not put in line again
	group      = 256     // records that are put in line together
	groupBytes = 1 << 20 // and their bytes, about
)

// take puts the records of the batch in line, and returns when they are delivered and saved.
func (i *intake) take(ctx context.Context, body io.Reader, large *semaphore.Weighted) error {
	var waiting []*change.Record
	bytes := 0
	push := func() error {
		err := i.push(ctx, waiting)
		clear(waiting)
		waiting, bytes = waiting[:0], 0
		return err
	}
	err := newFramer(body, large).each(ctx, func(text []byte) error {
		return i.read(text, func(rec *change.Record) error {
			waiting, bytes = append(waiting, rec), bytes+rec.Size()
			if len(waiting) < group && bytes < groupBytes {
				return nil
			}
			return push()
		})
	})
	if err == nil {
		err = push()
	}
	if err == nil {
		err = i.line.Drain(ctx)
	}
	return err
}

// read gives to put what the sinks are told of the event, one record after the other: a deleted collection has many,
// and a tenant may make each of them large (I6). nil is an event that is too large. What cannot be read says nothing:
// were the batch refused for it, a tenant's body could keep the events of others out.
func (i *intake) read(text []byte, put func(*change.Record) error) error {
	e, err := audit.Parse(text)
	if text == nil || err != nil {
		i.Observer.Event(string(audit.Unknown))
		return nil
	}
	for _, id := range i.begun.take(e) {
		i.Observer.Missing(id)
	}
	answers, outcome := audit.Judge(e)
	if outcome != audit.Told {
		i.Observer.Event(string(outcome))
		return nil
	}
	for _, answer := range answers {
		of, streamed := i.Find(e.Object.Group, e.Object.Resource, answer.Key.Namespace)
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
		for _, rec := range told {
			if err := put(rec); err != nil {
				return err
			}
		}
	}
	return nil
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
	if err := i.turn.Acquire(ctx, 1); err != nil {
		return err
	}
	defer i.turn.Release(1)
	for _, rec := range records {
		sum := sha256.Sum256(append(append(rec.AppendID(nil, ""), 0), rec.Sink...))
		id := digest(sum[:len(digest{})])
		if i.told.Contains(id) {
			continue
		}
		if err := i.line.Push(ctx, rec); err != nil {
			return err
		}
		i.told.Add(id, struct{}{})
	}
	return nil
}

// digest is a record's id and its sink.
type digest [16]byte

// The bounds of what is read, in bytes.
const (
	maxHead  = 4 << 10  // what comes before the events
	maxEvent = 24 << 20 // twice the largest object that an API server stores
	maxSmall = 1 << 20  // an event that others of its size may be in memory beside
	chunk    = 32 << 10
)

// errForm is a body that is no list of audit events.
var errForm = errors.New("want an EventList of audit.k8s.io/v1: have the webhook's version be audit.k8s.io/v1")

// framer finds the events in the body of a request, one after the other.
type framer struct {
	from  *bufio.Reader
	large *semaphore.Weighted // taken for an event above maxSmall
	event []byte
}

func newFramer(body io.Reader, large *semaphore.Weighted) *framer {
	return &framer{from: bufio.NewReaderSize(body, chunk), large: large}
}

// each gives the events to take, until that fails. An event that is too large is nil. They are valid until take
// returns.
func (f *framer) each(ctx context.Context, take func(event []byte) error) error {
	if err := f.head(); err != nil {
		return err
	}
	for first := true; ; first = false {
		c, err := f.next()
		switch {
		case err != nil:
			return err
		case c == ']':
			if c, err = f.next(); err != nil || c != '}' {
				return errors.Join(errForm, err)
			}
			return nil
		case c == ',' && !first:
			if c, err = f.next(); err != nil {
				return err
			}
		case !first:
			return errForm
		}
		if c != '{' {
			return errForm
		}
		if err := f.one(ctx, take); err != nil {
			return err
		}
	}
}

// head reads up to the events. Whoever writes JSON in Go writes the kind before them.
func (f *framer) head() error {
	var head []byte
	for len(head) < maxHead {
		c, err := f.from.ReadByte()
		if err != nil {
			return cut(err)
		}
		if head = append(head, c); c != '[' {
			continue
		}
		var list struct {
			Kind       string             `json:"kind"`
			APIVersion string             `json:"apiVersion"`
			Items      *[]json.RawMessage `json:"items"`
		}
		if json.Unmarshal(append(head, "]}"...), &list) != nil || list.Items == nil || list.Kind != "EventList" || list.APIVersion != "audit.k8s.io/v1" {
			return errForm
		}
		return nil
	}
	return errForm
}

// next is the next byte that is no white space.
func (f *framer) next() (byte, error) {
	for {
		c, err := f.from.ReadByte()
		if err != nil {
			return 0, cut(err)
		}
		if c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c, nil
		}
	}
}

// one reads an event after its first bracket, and gives it to take.
func (f *framer) one(ctx context.Context, take func([]byte) error) error {
	var inside scan.Balance
	inside.Enter()
	f.event = append(f.event[:0], '{')
	tooLarge := false
	for {
		if _, err := f.from.Peek(1); err != nil {
			return cut(err)
		}
		part, _ := f.from.Peek(f.from.Buffered())
		n := inside.Skip(part)
		ends := n >= 0
		if !ends {
			n = len(part)
		}
		if tooLarge = tooLarge || len(f.event)+n > maxEvent; !tooLarge {
			if len(f.event) <= maxSmall && len(f.event)+n > maxSmall {
				if err := f.large.Acquire(ctx, 1); err != nil {
					return err
				}
				defer f.large.Release(1)
				defer func() { f.event = nil }()
			}
			f.event = append(f.event, part[:n]...)
		}
		if f.from.Discard(n); ends { // of what is buffered it cannot fail
			break
		}
	}
	if tooLarge {
		return take(nil)
	}
	return take(f.event)
}

// cut is the error of a body that ends too early.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("the body ends within the events: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// unfinished are writes that an event has told of, and whether another one has told their end. Batches come in any
// order, so an end may be told first. It knows only what a policy tells of that has the stage RequestReceived.
type unfinished struct {
	mu    sync.Mutex                     // guards the following
	known *simplelru.LRU[string, *write] // by the audit id; that which was told of first is the oldest
}

// write is when it was told of first, and whether its end was told.
type write struct {
	at   time.Time
	over bool
}

const (
	// patience is how long the API server may send a batch again, with its default flags.
	patience = 30 * time.Minute
	longest  = 64 // bytes of an audit id, which clients may choose
)

func newUnfinished(most int) *unfinished {
	known, _ := simplelru.NewLRU[string, *write](most, nil) // of a size above 0 it cannot fail
	return &unfinished{known: known}
}

// take notes the event, and gives the ids of the writes whose end does not come any more.
func (u *unfinished) take(e *audit.Event) (missing []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	if e.IsBrief() {
		id := strings.Clone(e.ID[:min(len(e.ID), longest)])
		over := !slices.Contains([]string{"RequestReceived", "ResponseStarted"}, e.Stage)
		if w, known := u.known.Peek(id); known {
			w.over = w.over || over
		} else {
			u.known.Add(id, &write{now, over})
		}
	}
	for id, w, some := u.known.GetOldest(); some && now.Sub(w.at) > patience; id, w, some = u.known.GetOldest() {
		if u.known.Remove(id); !w.over {
			missing = append(missing, id)
		}
	}
	return missing
}
