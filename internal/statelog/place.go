package statelog

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/kubecdc/kubecdc/internal/sink"
)

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
			return &StrangeError{stored.Place}
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
	return &ForeignError{Have: s.newest, Want: to}
}

func reading(place *Place, err error) error {
	return fmt.Errorf("read the log of the state, %s: %w", place.Name, err)
}
