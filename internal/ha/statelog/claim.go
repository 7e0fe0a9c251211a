package statelog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
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
