package statelog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Bid is the wish to write a log.
type Bid struct {
	Of Identity // whose state it has to be
	As Claimant
	// Judge says why the log may not be taken from whoever said last that he writes it, and wrote at the time last; nil
	// is that it may.
	Judge func(last Claimant, wrote time.Time) error

	by    chain
	again bool // he has written before: if somebody else did so since, he is fenced
}

// judge refuses a log that is not his to write. One without a claim was lost, and made again.
func (b *Bid) judge(seen *survey) error {
	err := seen.belongs(b.Of)
	if err == nil && b.Judge != nil {
		err = b.Judge(seen.claim.Claimant, seen.written())
	}
	if err != nil || !b.again || seen.claimer == b.by || seen.claimer == (chain{}) {
		return err
	}
	return &sink.PermanentError{Fenced: true, Err: errors.New("another exporter writes it now: stop one of them, or give each a log of its own with state.log.name")}
}

// Claimed is a log of which this process is the writer. Nobody has written to it since.
type Claimed struct {
	place Place
	seen  *Survey
	said  said
	claim part // as it was written
}

// Claim makes this process the writer of the log: whoever was so before can write no more, so what is found is the end.
func Claim(ctx context.Context, place Place, bid Bid) (*Claimed, error) {
	bid.by = newChain()
	claimed, err := open(ctx, &place, &bid)
	if err != nil {
		return nil, errors.Join(err, place.Sink.Close(ctx))
	}
	return claimed, nil
}

// IsNewest says whether a state directory has all that the log has: no other member has claimed the log since the
// directory was led with, or the log has had all of it since. Its own member may have claimed it, and come to nothing:
// no answer, or a process that was killed before it led. Then the directory does not say so.
func (c *Claimed) IsNewest(led checkpoint.Led) bool {
	end, whole := c.seen.end()
	isLed := func(by chain) bool { return bytes.Equal(led.Claim, by[:]) }
	return slices.ContainsFunc(c.said.earlier, isLed) || whole && bytes.Equal(led.Logged, end)
}

// Close gives up a log that no Log writes.
func (c *Claimed) Close(ctx context.Context) error { return c.place.Sink.Close(ctx) }

// open makes this process the writer of the log, and returns what is in it. It looks whose log it is before that.
func open(ctx context.Context, place *Place, who *Bid) (*Claimed, error) {
	seen, err := look(ctx, place, nil)
	if err != nil {
		return nil, err
	}
	claimed, err := take(ctx, seen, who)
	if err := errors.Join(err, seen.Close()); err != nil {
		return nil, err
	}
	return claimed, nil
}

// take makes this process the writer of a log that was looked at, and reads and judges what came in the meantime: this
// process may have slept since it looked. In Kafka nothing comes after Open; in JetStream the claim is refused where
// something did.
func take(ctx context.Context, seen *survey, who *Bid) (*Claimed, error) {
	place := seen.place
	err := who.judge(seen)
	if err == nil {
		err = place.Sink.Open(ctx, sink.Opening{})
	}
	if err == nil {
		err = seen.more(ctx)
	}
	if err == nil {
		err = who.judge(seen)
	}
	said := seen.claim.after(seen.claimer, who.As)
	claim := part{of: who.Of, chain: who.by, flags: claims, parts: 1, saved: time.Now(), contents: said.contents()}
	if err == nil {
		_, err = place.Sink.Write(ctx, []sink.Message{place.message(&claim)})
	}
	if err != nil {
		return nil, fmt.Errorf("open the log of the state, %s: %w", place.Name, err)
	}
	return &Claimed{*place, &seen.Survey, said, claim}, nil
}

// Place is where a log is.
type Place struct {
	Name   string                                             // for people: "topic kubecdc-state.prod"
	Sink   sink.Sink                                          // its writer, which fences others
	Reader func() (sink.Reader, error)                        // from its beginning
	Of     func(slot string) (destination string, key []byte) // where the messages of a slot go
}

// claimSlot is the slot of the message that says who writes.
const claimSlot = "claim"

// message is the part as the sink takes it.
func (p *Place) message(of *part) sink.Message {
	slot := strconv.FormatUint(uint64(of.slot), 10)
	if of.flags&claims != 0 {
		slot = claimSlot
	}
	m := sink.Message{ID: of.id(), Op: sink.OpState, Value: of.encode(), Time: of.saved}
	m.Destination, m.Key = p.Of(slot)
	return m
}

// read hands on each message of the log that was not read yet.
func read(ctx context.Context, from sink.Reader, each func(*part) error) error {
	return from.Read(ctx, func(stored *sink.Stored) error {
		if len(stored.Value) == 0 {
			return nil // somebody has emptied it
		}
		p, err := parsePart(stored.Value)
		if errors.Is(err, errForm) {
			return refused("%s is no message of a log of the state: name another topic or bucket with state.log", stored.Place)
		}
		if err == nil {
			err = each(&p)
		}
		return err
	})
}

// survey is what the log holds, and the reader that goes on after it.
type survey struct {
	Survey
	place  *Place
	reader sink.Reader
	also   func(*part) error // is given each message, too; nil is nobody
}

// Close releases the reader.
func (s *survey) Close() error { return s.reader.Close() }

// look begins to read the log.
func look(ctx context.Context, place *Place, also func(*part) error) (*survey, error) {
	reader, err := place.Reader()
	if err != nil {
		return nil, reading(place, err)
	}
	s := &survey{place: place, reader: reader, also: also}
	if err := s.more(ctx); err != nil {
		return nil, errors.Join(err, reader.Close())
	}
	return s, nil
}

// more reads what has come since.
func (s *survey) more(ctx context.Context) error {
	err := read(ctx, s.reader, func(p *part) error {
		s.add(p)
		if s.also == nil {
			return nil
		}
		return s.also(p)
	})
	if err != nil {
		return reading(s.place, err)
	}
	return nil
}

// belongs refuses the log of somebody else.
func (s *survey) belongs(to Identity) error {
	if !s.seen || s.newest.Cluster == to.Cluster && (to.Instance == "" || s.newest.Instance == to.Instance) {
		return nil
	}
	if s.newest.Cluster != to.Cluster {
		return refused("it is of cluster %q (uid %s), and ours is %q: give each cluster a log of its own with state.log.name, or correct the key cluster",
			s.newest.Cluster, s.newest.UID, to.Cluster)
	}
	return refused("it is of another exporter's state (%s, ours is %s): give each release a log of its own with state.log.name; "+
		"to go on from that log instead, remove the state of this exporter with exporter checkpoint reset", s.newest.Instance, to.Instance)
}

func reading(place *Place, err error) error {
	return fmt.Errorf("read the log of the state, %s: %w", place.Name, err)
}

// Copy takes what the log has. Apply without a place fills it, and is of no worth before a call with a place.
type Copy interface {
	Begin(ctx context.Context) error
	Place() []byte
	Apply(changes checkpoint.Changes, place []byte) error
}

// Follower reads a log into a copy, as a standby does. It is for one goroutine, except Parts, and fences nobody before
// Claim.
//
// The copy is always what the log has up to a place: it takes whole units, each after the one before. Where the log
// does not go on from there, the copy begins anew: another chain counts, or units are gone that it lacks.
type Follower struct {
	Place Place
	Of    Identity
	Copy  Copy
	// Keep says whether the copy's owner has something newer than the log, if that one was the last to write it. Then
	// the copy is left alone.
	Keep func(last Claimant) bool

	seen *survey // nil is that the log is to be read from its beginning
	into *fold   // nil is that the copy has nothing that goes on
	took atomic.Int64
}

// Step reads what has come since the last one. When it returns nil, the copy has all of that.
func (f *Follower) Step(ctx context.Context) error {
	err := f.read(ctx)
	if err == nil {
		err = f.catchUp(ctx)
	}
	if err != nil {
		f.Close()
	}
	return err
}

// Parts is how many parts were read since the beginning, some of them twice. It grows as long as a Step gets on.
func (f *Follower) Parts() int64 { return f.took.Load() }

// Close lets go of the log. The next Step reads it from its beginning.
func (f *Follower) Close() {
	if f.seen != nil {
		_ = f.seen.Close() // it only reads
	}
	f.seen, f.into = nil, nil
}

// read reads the log on, and applies what follows the copy's place.
func (f *Follower) read(ctx context.Context) (err error) {
	if f.seen != nil {
		return f.seen.more(ctx)
	}
	if of, next, ok := parsePlace(f.Copy.Place()); ok {
		f.into = &fold{of: of, next: next, apply: f.apply}
	}
	f.seen, err = look(ctx, &f.Place, f.add)
	return err
}

func (f *Follower) add(p *part) error {
	f.took.Add(1)
	if f.into == nil {
		return nil
	}
	return f.into.add(p)
}

func (f *Follower) apply(changes checkpoint.Changes, place []byte) error {
	f.took.Add(1)
	return f.Copy.Apply(changes, place)
}

// catchUp fills the copy anew where the log does not go on from it.
func (f *Follower) catchUp(ctx context.Context) error {
	if err := f.seen.belongs(f.Of); err != nil {
		return err
	}
	at, whole := f.seen.holds(f.Place)
	if !whole || f.Keep(f.seen.claim.Claimant) || bytes.Equal(f.Copy.Place(), at.End()) {
		return nil
	}
	if err := f.Copy.Begin(ctx); err != nil {
		return err
	}
	f.into = &fold{of: at.chain, next: at.from, apply: f.apply}
	_, err := at.fill(ctx, f.into)
	return err
}

// Claim makes this process the writer of the log, and gives the copy what it still lacks, if the log goes on from it.
// It reads only what came since the last Step.
func (f *Follower) Claim(ctx context.Context, bid Bid) (claimed *Claimed, err error) {
	bid.by = newChain()
	if err = f.read(ctx); err == nil {
		claimed, err = take(ctx, f.seen, &bid)
	}
	if err == nil {
		err = f.hear(ctx, bid.by)
	}
	f.Close()
	if err != nil {
		return nil, errors.Join(err, f.Place.Sink.Close(ctx))
	}
	return claimed, nil
}

// How long a claim may take until it can be read, and how often that is tried.
const (
	hearing = 2 * time.Second
	tries   = 20 * time.Millisecond
)

// hear reads until the claim comes. A reader that does not see it has been reading another log: one that was deleted
// since, and made again. Then what was seen counts for nothing.
func (f *Follower) hear(ctx context.Context, by chain) error {
	for until := time.Now().Add(hearing); ; {
		if err := f.seen.more(ctx); err != nil || f.seen.claimer == by {
			return err
		}
		if time.Now().After(until) {
			return reading(&f.Place, errors.New("it was made anew while it was read: try again"))
		}
		if !sink.Pause(ctx, tries, nil) {
			return context.Cause(ctx)
		}
	}
}

// ErrNothing says that a log holds no state: nothing was written to it, or no whole state yet.
var ErrNothing = errors.New("it holds no whole state: nothing has written one yet")

// errMoved says that the writer has taken away what was to be read.
var errMoved = errors.New("it was written to faster than it could be read: try again, or stop the exporter that writes it")

// Found is what the log of a state holds: the units that make the newest one.
type Found struct {
	Place    string    `json:"place"`
	Saved    time.Time `json:"saved"` // when the newest of what they say was saved
	Bytes    int       `json:"bytes"` // that are needed, compressed
	Messages int       `json:"messages"`

	chain    chain
	from, to uint64
	log      Place
}

// holds is what the log at the place holds, false where that is no state.
func (s *Survey) holds(log Place) (*Found, bool) {
	r := s.found()
	return &Found{
		Place: log.Name, Saved: r.saved.UTC(), Bytes: r.bytes(), Messages: len(r.live), chain: r.chain, from: r.from, to: r.next - 1, log: log,
	}, r.whole
}

// End is the place of one who has all of it.
func (f *Found) End() []byte { return placeOf(f.chain, f.to+1) }

// Found is what the log holds. It returns ErrNothing where that is no state.
func (c *Claimed) Found() (*Found, error) { return found(c.seen, c.place, nil) }

// Look finds the newest state that the log holds, and fences nobody. It returns ErrNothing where there is none, and why
// the log would be refused to the bid.
func Look(ctx context.Context, place Place, bid Bid) (*Found, error) {
	seen, err := look(ctx, &place, nil)
	if err != nil {
		return nil, err
	}
	return found(&seen.Survey, place, errors.Join(bid.judge(seen), seen.Close()))
}

func found(seen *Survey, place Place, err error) (*Found, error) {
	at, whole := seen.holds(place)
	if err == nil && !whole {
		err = ErrNothing
	}
	if err != nil {
		return nil, reading(&place, err)
	}
	return at, nil
}

// Into gives the state to what fills a copy, as of Copy.Apply, and returns the place in the log that it is of.
func (f *Found) Into(ctx context.Context, apply func(changes checkpoint.Changes, place []byte) error) (place []byte, err error) {
	return f.fill(ctx, &fold{of: f.chain, next: f.from, apply: apply})
}

// fill reads the log from its beginning into the fold, and returns the place up to which that has all. What is applied
// has no place before the end.
func (f *Found) fill(ctx context.Context, into *fold) (place []byte, err error) {
	reader, err := f.log.Reader()
	if err != nil {
		return nil, err
	}
	apply := into.apply
	into.apply = func(changes checkpoint.Changes, _ []byte) error { return apply(changes, nil) }
	err = errors.Join(read(ctx, reader, into.add), reader.Close())
	into.apply = apply
	if err == nil && into.next <= f.to {
		err = errMoved
	}
	if err != nil {
		return nil, reading(&f.log, err)
	}
	place = placeOf(f.chain, into.next)
	return place, apply(nil, place)
}

// fold puts the units of a chain together, in their order, and applies each when it is whole. It is pure, and keeps one
// unit in memory.
type fold struct {
	of    chain
	next  uint64 // the unit to come, or to be completed
	apply func(changes checkpoint.Changes, place []byte) error

	// Of that unit.
	number   int // of the part to come
	parts    int
	saved    time.Time
	contents []byte
}

// add takes the next message of the log.
func (f *fold) add(p *part) error {
	switch {
	case p.flags&claims != 0:
		f.number = 0 // whoever writes from here on begins units anew
		return nil
	case p.chain != f.of || p.unit != f.next || !f.completes(p):
		return nil
	}
	changes, err := join(f.contents)
	if err == nil {
		err = f.apply(changes, placeOf(f.of, f.next+1))
	}
	f.next, f.number = f.next+1, 0
	return err
}

// completes takes a part of the unit, and says whether that was the last one.
func (f *fold) completes(p *part) bool {
	switch {
	case p.number == 0:
		f.number, f.parts, f.saved, f.contents = 0, p.parts, p.saved, f.contents[:0]
	case p.number < f.number:
		return false // it was read before
	case p.number != f.number || p.parts != f.parts || !p.saved.Equal(f.saved):
		f.number = 0 // what is left of one that was begun and never finished
		return false
	}
	f.contents = append(f.contents, p.contents...)
	f.number++
	return f.number == f.parts
}
