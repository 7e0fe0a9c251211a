package sinktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
)

const tooLarge = 1<<20 + 1

var (
	errCut    = errors.New("connection reset")
	errFenced = errors.New("another sink is open")
)

// memory is a log that any number of sinks write to, and that lies as a broken sink would.
type memory struct {
	lie string

	mu      sync.Mutex
	epoch   int // how often the log was made again
	stored  []Stored
	owner   *memorySink
	cutIn   int // the connection breaks after so many messages, if it is above 0
	stalled chan struct{}
}

// memorySink holds the contract, but for the log's lie.
type memorySink struct {
	log  *memory
	open bool
	kept []Stored
}

func (s *memorySink) Open(ctx context.Context, at sink.Opening) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.open, s.log.owner = true, s
	if at.Mark == "" && s.log.lie != "returns what is foreign" {
		return nil
	}
	epoch, from := parseMark(at.Mark)
	if s.log.lie != "overlooks the loss" && (epoch != s.log.epoch || from > len(s.log.stored)) {
		return &sink.LostError{Log: "memory", Want: string(at.Mark), Have: strconv.Itoa(len(s.log.stored))}
	}
	if s.log.lie == "forgets what follows" {
		return nil
	}
	found := at.After()
	for _, stored := range s.log.stored[min(from, len(s.log.stored)):] {
		found(stored.ID)
	}
	return nil
}

func parseMark(mark sink.Mark) (epoch, at int) {
	first, second, _ := strings.Cut(string(mark), "/")
	epoch, _ = strconv.Atoi(first)
	at, _ = strconv.Atoi(second)
	return epoch, at
}

func (s *memorySink) Write(ctx context.Context, batch []sink.Message) (sink.Mark, error) {
	if err := s.wait(ctx); err != nil {
		return "", err
	}
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	if s.log.owner != s && s.log.lie != "does not fence" {
		return "", errFenced
	}
	switch {
	case s.log.lie == "reorders" && len(batch) > 2:
		batch[0], batch[1] = batch[1], batch[0]
	case s.log.lie == "leaks":
		go func() { <-context.Background().Done() }()
	}
	s.log.stored, s.kept = append(s.log.stored, s.kept...), nil
	for i := range batch {
		err := s.put(i, &batch[i])
		if err == nil {
			continue
		}
		if torn := i+1 < len(batch) && batch[i].ID == batch[i+1].ID; torn && errors.Is(err, errCut) && s.log.lie != "tears pairs" {
			s.log.stored = s.log.stored[:len(s.log.stored)-1]
		}
		return s.place(), err
	}
	if n := len(s.log.stored); s.log.lie == "acknowledges early" && n > 0 {
		s.log.stored, s.kept = s.log.stored[:n-1], s.log.stored[n-1:]
	}
	return s.place(), nil
}

func (s *memorySink) place() sink.Mark {
	return sink.Mark(fmt.Sprint(s.log.epoch, "/", len(s.log.stored)))
}

func (s *memorySink) wait(ctx context.Context) error {
	s.log.mu.Lock()
	stalled := s.log.stalled
	s.log.mu.Unlock()
	if s.log.lie == "hangs" {
		<-stalled
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-stalled:
		return ctx.Err()
	}
}

func (s *memorySink) put(i int, m *sink.Message) error {
	if len(m.Value) >= tooLarge {
		if s.log.lie == "names another message" {
			i++
		}
		return &sink.RejectedError{Index: i, Reason: "too_large", Err: errors.New("too large")}
	}
	stored := Stored{ID: m.ID, Value: bytes.Clone(m.Value), Destination: m.Destination, Headers: append([]sink.Header{
		{Name: sink.HeaderID, Value: m.ID}, {Name: sink.HeaderOp, Value: m.Op},
		{Name: sink.HeaderResourceVersion, Value: m.ResourceVersion},
	}, m.Headers...)}
	switch s.log.lie {
	case "keeps the batch":
		stored.Value = m.Value
	case "drops headers":
		stored.Headers = stored.Headers[:3]
	case "drops tombstones":
		if m.Value == nil {
			return nil
		}
	}
	s.log.stored = append(s.log.stored, stored)
	if s.log.cutIn--; s.log.cutIn != 0 {
		return nil
	}
	if s.log.lie == "repeats after a cut" {
		s.log.stored = append(s.log.stored, stored)
	}
	return errCut
}

func (s *memorySink) Close(context.Context) error {
	if !s.open && s.log.lie == "closes once" {
		return errors.New("not open")
	}
	s.open = false
	return nil
}

func (m *memory) env(*testing.T) *Env {
	running := make(chan struct{})
	close(running)
	m.stalled = running
	var prompt time.Duration
	if m.lie != "" {
		prompt = 2 * time.Second // what it is to catch takes as long
	}
	return &Env{
		Prompt: prompt, Pairs: true, TooLarge: tooLarge,
		Sink:        func(*testing.T) sink.Sink { return &memorySink{log: m} },
		Messages:    func(*testing.T) []Stored { return append([]Stored(nil), m.stored...) },
		Destination: func(number int) string { return "subject." + strconv.Itoa(number%3) },
		Foreign:     func(*testing.T) { m.stored = append(m.stored, Stored{ID: "foreign"}) },
		Cut: func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.cutIn = 1 + rand.IntN(5)
		},
		Stall: func(*testing.T) func() {
			stalled := make(chan struct{})
			m.set(stalled)
			return sync.OnceFunc(func() { close(stalled); m.set(running) })
		},
		Truncate: func(*testing.T) { m.stored, m.owner = m.stored[:len(m.stored)/2], nil },
		Recreate: func(*testing.T) { m.stored, m.owner, m.epoch = nil, nil, m.epoch+1 },
	}
}

func (m *memory) set(stalled chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stalled = stalled
}
