package listener

import (
	"cmp"
	"iter"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// Views are the states of the sinks of a run.
type Views struct {
	Streams map[string][]View // by the name of the stream
	Marks   map[string]string // the saved marks by the name of the sink
}

// Oldest is when the oldest record of each stream was received that is neither delivered nor on disk, by the stream's
// name.
func (i *Intake) Oldest() map[string]time.Time { return query(i, (*fifo.Backlog).OldestOf) }

// View is the state of the sink and the stream, which it takes.
func (i *Intake) View(stream *change.Stream) View {
	i.mu.Lock()
	life, offered := i.life, i.follower != nil
	i.mu.Unlock()
	view := View{Sink: i.Name}
	i.shown.of(stream, &view)
	switch {
	case !offered && life == Halted:
		view.Waits = ForRepair
	case !offered:
		view.Waits = ForOpening
	case i.Gate != nil && !i.Gate.Admits(stream):
		view.Waits = ForSchema
	}
	return view
}

// SavedMark is the mark that is saved.
func (i *Intake) SavedMark() string {
	i.shown.mu.Lock()
	defer i.shown.mu.Unlock()
	return i.shown.mark
}

// Seat is a sink as one watch of a stream sees it, for one opening of the sink. After the next opening the sink goes on
// from what is saved then, and the seat is over.
type Seat struct {
	*Intake
	serving uint64
}

// Seat is the sink's seat; offered is false if the sink is offered nothing.
func (i *Intake) Seat() (seat *Seat, offered bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return &Seat{i, i.servings}, i.follower != nil
}

// at is the sink's Follower, nil if the seat is over. The caller holds mu.
func (s *Seat) at() *Follower {
	if s.servings != s.serving {
		return nil
	}
	return s.follower
}

// with calls do with the sink's Follower under mu, unless the seat is over.
func (s *Seat) with(do func(*Follower)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if follower := s.at(); follower != nil {
		do(follower)
	}
}

// IsOver says whether the sink was opened again, or is offered nothing.
func (s *Seat) IsOver() bool {
	over := true
	s.with(func(*Follower) { over = false })
	return over
}

// Answer is what becomes of a change that the sink is offered.
type Answer byte

const (
	Accepted   Answer = iota // it is in the queue, or need not be
	NoRoom                   // the queue has no room for it
	NotOffered               // the sink is not to be given the stream now
	Occupied                 // the sink has another object of the name, whose delete must be told first
)

// Offer gives the sink a change that a watch of the stream has brought, in the shape that all sinks share. last are the
// images of the object, and base is the version of the image that is the record's Before.
func (s *Seat) Offer(rec *change.Record, way *Way, last change.Images, base string) (Answer, error) {
	if s.Gate != nil && !s.Gate.Admits(rec.Stream) {
		return NotOffered, nil
	}
	item, known := toldItem(rec, way.Resource, way.Scope), last.Of(s.Name)
	own := *rec
	if own.Before != nil && known.Version != base { // this sink was told another state last, or none
		if own.Before = nil; known.UID == rec.UID {
			own.Before = known.Object
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	follower := s.at()
	if follower == nil {
		return NotOffered, nil
	}
	if s.reserve(&own) {
		return NoRoom, nil
	}
	newest := func() (checkpoint.Row, error) {
		s.mu.Unlock() // the disk may take its time, and nobody else tells the sink anything of this stream
		defer s.mu.Lock()
		return s.Newest(item.Object())
	}
	resolves := s.resolves(rec, way)
	as, row, err := follower.Offer(&item, *way, newest)
	if err != nil || s.at() != follower {
		s.backlog.Cancel(own.Size())
		return NotOffered, err
	}
	defer s.signal()
	switch as {
	case Skipped, Moved:
		s.backlog.Cancel(own.Size())
		switch {
		case as == Moved && rec.Keep && row.Exists() && row.At == item.At && known.Version != rec.ResourceVersion:
			s.putSilent(rec, item) // only the log has said that the sink has this state, so it is not kept yet
		case as == Moved:
			s.move(rec, item.Given)
		}
		return Accepted, nil
	case Replaces:
		s.backlog.Cancel(own.Size())
		return Occupied, nil
	}
	if rec.Filtered || rec.Ignored && known.Version == base { // it is ignored in comparison with base only
		s.backlog.Cancel(own.Size())
		s.putSilent(rec, item)
		return Accepted, nil
	}
	resolves(item.Given)
	own.Given = item.Given.Version
	s.put(&own, item)
	return Accepted, nil
}

// resolves returns a function that queues a Resolved record, if the sink asks for that and keeps up: it has every
// change of the stream up to a point. A watch brings changes in order, so a change above the point, or a bookmark at
// it, proves that the server had no others up to there. A list proves that for its own version only, since it lacks
// what was deleted by then. A comparison that is under way may still bring more, so the record names it. The caller
// holds mu.
func (s *Seat) resolves(brought *change.Record, way *Way) func(to checkpoint.Point) {
	of, now := part{way.Resource, way.Scope}, brought.Received
	if s.Resolved == 0 || now.Sub(s.resolved[of]) < s.Resolved {
		return func(checkpoint.Point) {}
	}
	told := s.follower.Newest(way)
	return func(to checkpoint.Point) {
		if told.After(to) {
			return
		}
		s.resolved[of] = now
		if oldest := s.backlog.Levels().Oldest; !oldest.IsZero() && now.Sub(oldest) > s.Resolved {
			return
		}
		rec := &change.Record{Stream: brought.Stream, Op: change.Resolved, ResourceVersion: to.Version, Received: now, Epoch: brought.Epoch}
		s.follower.of(way.Resource).Each(way.Scope, func(_ string, place checkpoint.Place) {
			if c := place.Comparison; c.UnderWay() {
				rec.Snapshot = &change.Snapshot{ID: c.ID, Reason: cmp.Or(c.Reason, change.Stale)}
			}
		})
		if proof := s.proofs[of]; proof != nil {
			rec.Remarks = &change.Remarks{Proof: proof}
		}
		s.overdraw(rec)
	}
}

// Tell queues what a comparison has found.
func (s *Seat) Tell(rec *change.Record, item checkpoint.Item) {
	s.with(func(f *Follower) {
		if item.Kind == checkpoint.Told {
			f.Tell(&item)
		}
		switch {
		case rec.Filtered:
			s.putSilent(rec, item)
		case item.Kind == checkpoint.Told:
			s.backlog.Overdraw(rec.Size())
			s.put(rec, item)
		default:
			if item.Kind == checkpoint.Sync && s.Coalesce && rec.Op == change.Sync { // it may supersede what told it
				item.Kind = checkpoint.Told
			}
			s.putOwn(rec, item, s.keptOf(rec))
		}
		s.signal()
	})
}

// Bookmark moves the sink's position to the bookmark's version. given is false if the seat is over.
func (s *Seat) Bookmark(rec *change.Record, way *Way) (given bool) {
	s.with(func(f *Follower) {
		to := pointOf(rec, rec.ResourceVersion)
		resolves := s.resolves(rec, way)
		f.Bookmark(*way, to)
		resolves(to)
		s.move(rec, to)
		s.signal()
		given = true
	})
	return given
}

// Framing makes the record of a frame.
type Framing func(seat *Seat, frame *checkpoint.Item) *change.Record

// Begin makes the sink go on with the stream, given where the server stands.
func (s *Seat) Begin(way *Way, server Standing, framing Framing) {
	s.with(func(f *Follower) { s.putFrames(f.Begin(*way, server), framing) })
}

// Due begins the comparisons that were asked for, unless one is under way.
func (s *Seat) Due(way *Way, framing Framing) {
	s.with(func(f *Follower) { s.putFrames(f.Due(*way), framing) })
}

// Renew replaces the comparison, which is under way, by a new one.
func (s *Seat) Renew(way *Way, c checkpoint.Comparison, framing Framing) {
	s.with(func(f *Follower) { s.putFrames(f.Renew(*way, c), framing) })
}

func (s *Seat) putFrames(frames []checkpoint.Item, framing Framing) {
	for at := range frames {
		if at > 0 && frames[at-1].Kind == checkpoint.Gap {
			frames[at].From = frames[at-1].From
		}
		s.putOwn(framing(s, &frames[at]), frames[at], nil)
	}
	s.signal()
}

// End tells the sink that the comparison is over.
func (s *Seat) End(way *Way, c checkpoint.Comparison, rec *change.Record) {
	s.with(func(f *Follower) {
		s.putOwn(rec, f.End(way.Resource, c, pointOf(rec, rec.ResourceVersion)), nil)
		s.signal()
	})
}

// Withdraw drops the full comparisons of the part of the stream that were asked for, even those under way. The sink is
// told nothing.
func (s *Seat) Withdraw(way *Way, namespace string) {
	s.with(func(f *Follower) {
		places := f.of(way.Resource)
		places.Each(checkpoint.Scope(namespace), func(name string, place checkpoint.Place) {
			if place.Asked.Full() {
				place.Asked = ""
			}
			places[name] = place
		})
		for _, c := range f.Comparisons(*way) {
			if c.IsAsked() && c.Namespace == namespace {
				s.putOwn(&change.Record{Op: change.Bookmark, Received: time.Now()}, f.End(way.Resource, c, checkpoint.Point{}), nil)
			}
		}
		s.signal()
	})
}

// Over has saved that the stream is over: the sink knows that nothing of it exists.
func (s *Seat) Over(way *Way, stream *change.Stream) {
	s.with(func(f *Follower) {
		silent := &change.Record{Stream: stream, Op: change.Bookmark, Received: time.Now()}
		s.putOwn(silent, checkpoint.Item{Kind: checkpoint.Over, Resource: way.Resource, Scope: way.Scope}, nil)
		f.of(way.Resource).Leave(way.Scope)
		s.signal()
	})
}

// Known is how far the sink was given the stream.
func (s *Seat) Known(way *Way) (known Known) {
	s.with(func(f *Follower) { known = f.Known(*way) })
	return known
}

// Passed is the sink's position in the namespace.
func (s *Seat) Passed(resource, namespace string) (at checkpoint.Point) {
	s.with(func(f *Follower) { at = f.Passed(resource, namespace) })
	return at
}

// Has yields the keys of the resource that the sink was told of, in the namespace, or in all with Others. It yields
// those after the joined key behind, up to upTo; "" is no bound. Some keys come twice, and some are of objects that are
// gone.
func (s *Seat) Has(resource, namespace, behind, upTo string) iter.Seq2[change.Key, error] {
	within := func(key change.Key) bool {
		joined := key.String()
		return (namespace == checkpoint.Others || key.Namespace == namespace) && joined > behind && (upTo == "" || joined <= upTo)
	}
	return func(yield func(change.Key, error) bool) {
		s.mu.Lock()
		var keys []change.Key
		for of := range s.told {
			if of.Resource == resource && within(of.Key) {
				keys = append(keys, of.Key)
			}
		}
		s.mu.Unlock()
		for _, key := range keys {
			if !yield(key, nil) {
				return
			}
		}
		for _, rows := range []iter.Seq2[checkpoint.SinkObject, error]{
			s.state.Objects(resource, namespace, behind), s.state.ObjectsOnDisk(resource, namespace, behind),
		} {
			for row, err := range rows {
				if err == nil && !within(row.Of.Key) {
					break // they come in the order of the keys
				}
				if !yield(row.Of.Key, err) || err != nil {
					return
				}
			}
		}
	}
}

// Comparisons are the comparisons of the stream that are under way.
func (s *Seat) Comparisons(way *Way) (all []checkpoint.Comparison) {
	s.with(func(f *Follower) { all = f.Comparisons(*way) })
	return all
}

// Ask notes that a comparison of the stream is asked for.
func (s *Seat) Ask(way *Way, reason change.Reason) {
	s.with(func(f *Follower) { f.Ask(*way, reason) })
}
