package statelog

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// standby follows the world's log into a copy of its own. What it wrote last is lost when it is killed.
type standby struct {
	*Follower
	w     *world
	disk  []copied // what the copy was, oldest first, since it began; the newest is what it is
	fills int
}

// copied is a copy as of a place, nil while it is being filled.
type copied struct {
	rows  map[string]string
	place []byte
}

func (s *standby) now() *copied {
	if len(s.disk) == 0 {
		s.disk = []copied{{rows: map[string]string{}}}
	}
	return &s.disk[len(s.disk)-1]
}

func (s *standby) Place() []byte { return s.now().place }

func (s *standby) Begin(context.Context) error {
	s.disk = nil
	s.fills++
	return nil
}

func (s *standby) Apply(changes checkpoint.Changes, place []byte) error {
	next := copied{maps.Clone(s.now().rows), place}
	if err := changes.Fold(next.rows); err != nil {
		return err
	}
	s.disk = append(s.disk, next)
	return nil
}

// start is the start of a process, with what is on the disk.
func (s *standby) start() {
	s.Follower = &Follower{Place: s.w.place(), Of: Identity{Cluster: "c"}, Copy: s, Keep: func(Claimant) bool { return false }}
}

// kill is the end of one, at any time, and the start of the next.
func (s *standby) kill() {
	if n := len(s.disk); n > 0 {
		s.disk = s.disk[:1+s.w.random.IntN(n)]
	}
	s.start()
}

// judge compares the copy with what the log had at its place, as one finds it who reads all that was ever written.
func (s *standby) judge() {
	s.w.t.Helper()
	at := s.now()
	if at.place == nil {
		return
	}
	if want := s.w.at(at.place); !maps.Equal(at.rows, want) {
		s.w.t.Fatalf("the copy at %x has %v\nand the log had %v", at.place, at.rows, want)
	}
}

// at is the state that the log had at the place: the units of a chain, one after the other.
func (w *world) at(place []byte) map[string]string {
	w.t.Helper()
	of, next, ok := parsePlace(place)
	if !ok {
		w.t.Fatalf("%x is no place", place)
	}
	rows := map[string]string{}
	all := fold{of: of, apply: func(changes checkpoint.Changes, _ []byte) error { return changes.Fold(rows) }}
	for _, m := range w.ever {
		p, err := parsePart(m)
		if err == nil && p.unit < next {
			err = all.add(&p)
		}
		must(w.t, err)
	}
	if all.next != next {
		w.t.Fatalf("the log never had unit %d of chain %x, and the copy has unit %d", all.next, of, next-1)
	}
	return rows
}

// rest lets the standby read while nobody writes: then it has what the log has.
func (s *standby) rest() {
	s.w.t.Helper()
	meanwhile := s.w.meanwhile
	s.w.meanwhile = func() {}
	defer func() { s.w.meanwhile = meanwhile }()
	if err := s.Step(context.Background()); err != nil {
		s.w.t.Fatalf("nobody writes, and the standby cannot read: %v", err)
	}
	s.judge()
	found, err := Look(context.Background(), s.w.place(), Bid{Of: Identity{Cluster: "c"}})
	if err == nil && !bytes.Equal(found.End(), s.Place()) {
		s.w.t.Fatalf("the log ends at %x, and the copy at %x", found.End(), s.Place())
	}
}

// work lets the leader do something.
func (w *world) work() error {
	switch n := w.random.IntN(10); {
	case n < 4:
		w.commit()
	case n < 5:
		w.letter()
	default:
		return w.step()
	}
	return nil
}

// takeOver makes the state of the standby's copy the leader's, which has to be the log's newest one.
func (w *world) takeOver(s *standby) error {
	claimed, err := s.Claim(context.Background(), Bid{Of: Identity{Cluster: "c"}})
	if err != nil {
		return err
	}
	found, err := claimed.Found()
	if err != nil {
		return err
	}
	if end, _ := claimed.seen.end(); string(found.End()) != string(s.Place()) || end != nil && string(end) != string(s.Place()) {
		return errMoved
	}
	w.judge() // what it goes on from is what the one before was
	have, _, err := w.restored()
	if err != nil || !maps.Equal(have, s.now().rows) {
		w.t.Fatalf("the copy has %v\nand the log %v, %v", s.now().rows, have, err)
	}
	w.become(have, s.Place())
	return w.beginWith(claimed)
}

// TestI5I11ACopyIsWhatTheLogHadAtItsPlace lets standbys follow a log while it is written, compacted and taken over:
// they are killed at any time, fall behind, and become the leader.
func TestI5I11ACopyIsWhatTheLogHadAtItsPlace(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 20
	}
	steps, fills, takeovers, refused := 0, 0, 0, 0
	for seed := range seeds {
		random := rand.New(rand.NewPCG(uint64(seed), 2))
		w := newWorld(t, random, seed%2 == 0)
		s := &standby{w: w}
		s.start()
		leads := false
		for range 8 { // terms of leaders
			if leads = leads || w.begin() == nil; !leads {
				t.Fatalf("seed %d: nobody can lead", seed)
			}
			var err error
			for n := 0; n < 60 && err == nil; n++ {
				w.meanwhile = func() {
					if err == nil && random.IntN(4) == 0 {
						err = w.work()
					}
				}
				switch n := random.IntN(12); {
				case n == 0:
					s.rest()
				case n == 1:
					if stepErr := s.Step(context.Background()); stepErr == nil {
						steps++
					} else if !errors.Is(stepErr, errMoved) {
						t.Fatalf("seed %d: %v", seed, stepErr)
					}
					s.judge()
				case n == 2 && random.IntN(4) == 0:
					s.kill()
					s.judge()
				case n == 3 && random.IntN(10) == 0: // the standby is paused
					for range 200 {
						err = errors.Join(err, w.work())
					}
				default:
					err = w.work()
				}
			}
			w.meanwhile = func() {}
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			err = w.takeOver(s)
			switch leads = err == nil; {
			case err == nil:
				takeovers++
			case errors.Is(err, errMoved), errors.Is(err, ErrNothing):
				refused++
			default:
				t.Fatalf("seed %d: take over: %v", seed, err)
			}
			s.judge()
			for n := 0; n < 20 && err == nil; n++ {
				err = w.work()
			}
			s.kill()
		}
		fills += s.fills
	}
	t.Logf("%d steps, %d fills, %d takeovers with a copy, %d without", steps, fills, takeovers, refused)
	if takeovers < seeds || fills > steps/2 {
		t.Errorf("of %d steps %d filled a copy, and %d takeovers had one", steps, fills, takeovers)
	}
}
