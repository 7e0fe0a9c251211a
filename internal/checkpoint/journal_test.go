package checkpoint

import (
	"context"
	"errors"
	"maps"
	oldrand "math/rand"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// folded is a journal that applies what it is told to a map.
type folded struct {
	t    *testing.T
	rows map[string]string
}

func (f *folded) Record(changes Changes) { must(f.t, changes.Fold(f.rows)) }

// rowsOf are the rows of the state that a log has.
func rowsOf(t *testing.T, s *Store) map[string]string {
	t.Helper()
	rows := map[string]string{}
	for table := range 0xfe {
		must(t, s.each([]byte{byte(table)}, func(key, value []byte) error {
			if isLogged(key) {
				rows[string(key)] = string(value)
			}
			return nil
		}))
	}
	return rows
}

func journaled(t *testing.T, dir string) (*Store, *folded) {
	t.Helper()
	f := &folded{t: t, rows: map[string]string{}}
	s, err := Open(context.Background(), dir, Options{Logger: quiet(), Journal: f})
	must(t, err)
	return s, f
}

// churn changes something of the state at random.
func churn(t *testing.T, s *Store, random *rand.Rand, version int) {
	name, uid := strconv.Itoa(random.IntN(40)), strconv.Itoa(random.IntN(3))
	item := told("pods", name, uid, version)
	item.Gone = random.IntN(3) == 0
	sinkName := []string{"a", "b"}[random.IntN(2)]
	must(t, save(s, sinkName, strconv.Itoa(version), item))
	switch random.IntN(30) {
	case 0:
		must(t, save(s, sinkName, strconv.Itoa(version), Item{Kind: Begin, Resource: "pods", Scope: Others, At: item.At}))
	case 1:
		must(t, s.Commit(Batch{PendingSnapshots: []PendingSnapshot{owe("b", "pods", change.Requested)}}))
	case 2:
		must(t, s.KnowStreams([]change.Stream{{Resource: change.Resource{Name: name}}}))
	case 3:
		must(t, s.SetCluster(Cluster{Name: "c", UID: uid}))
	case 4:
		must(t, s.Forget("b"))
	}
}

// TestI5TheJournalHearsAllThatIsWritten: whoever applies what it is told has the rows of the state, at any moment, and
// so has whoever applies its pages.
func TestI5TheJournalHearsAllThatIsWritten(t *testing.T) {
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	s, journal := journaled(t, dir)
	for version := range 400 {
		churn(t, s, random, version+1)
		if want := rowsOf(t, s); !maps.Equal(journal.rows, want) {
			t.Fatalf("after %d commits the journal has %q, want %q", version+1, journal.rows, want)
		}
	}
	paged, next := map[string]string{"1stale\x00x": "y"}, []byte(nil)
	for pages := 1; ; pages++ {
		page, more, err := s.Page(next, 60, func() bool { return true })
		must(t, err)
		must(t, page.Fold(paged))
		if next = more; more == nil {
			if want := rowsOf(t, s); pages < 3 || !maps.Equal(paged, want) {
				t.Errorf("%d pages have %q, want %q", pages, paged, want)
			}
			break
		}
	}
	must(t, s.Close())
}

// TestI5ARestoredStateIsTheSame: another directory that is given a page has the same state, with its files beside it;
// cut short it is refused, and is begun again.
func TestI5ARestoredStateIsTheSame(t *testing.T) {
	s, _ := journaled(t, t.TempDir())
	must(t, s.SetCluster(Cluster{Name: "c", UID: "u"}))
	state, err := s.LoadSink("lake")
	must(t, err)
	for h := (&history{r: oldrand.New(oldrand.NewSource(1)), version: 10, at: 1}); h.version < 60; {
		i := h.next()
		must(t, state.Acked(&i))
		state.Mark = strconv.Itoa(h.version)
		must(t, s.SaveSinks([]*SinkState{state}, Spools{}, nil))
	}
	want := rowsOf(t, s)
	page, next, err := s.Page(nil, 1<<30, func() bool { return true })
	must(t, err)
	if next != nil {
		t.Fatal("a large page is not all")
	}
	must(t, s.Close())

	dir, ctx := t.TempDir(), context.Background()
	cut, err := Restore(ctx, dir, Options{Logger: quiet()})
	must(t, err)
	must(t, cut.Apply(Changes{}.Set([]byte("1stale\x00x"), []byte("y")), nil))
	must(t, cut.Close())
	if _, err := Open(ctx, dir, Options{Logger: quiet()}); !errors.Is(err, ErrRestoring) {
		t.Errorf("a part of a state opens: %v", err)
	}
	if _, found, err := LedAt(ctx, dir, Options{Logger: quiet()}); err != nil || found {
		t.Errorf("a part of a state is no empty directory: %v", err)
	}
	r, err := Restore(ctx, dir, Options{Logger: quiet()})
	must(t, err)
	must(t, r.Apply(page, nil))
	must(t, r.Apply(Changes{}.Set(FileKey("lake/1.letter"), []byte("letter")), []byte("place")))
	files := map[string]string{}
	must(t, r.Finish([]byte("place"), func(name string, content []byte) error { files[name] = string(content); return nil }))
	must(t, r.Close())
	if files["lake/1.letter"] != "letter" || len(files) != 1 {
		t.Errorf("files %q", files)
	}
	if _, err := Restore(ctx, dir, Options{Logger: quiet()}); !errors.Is(err, ErrState) {
		t.Errorf("a state is written over: %v", err)
	}
	restored, _ := journaled(t, dir)
	defer func() { must(t, restored.Close()) }()
	if have := rowsOf(t, restored); !maps.Equal(have, want) {
		t.Errorf("restored %q, want %q", have, want)
	}
	for i, want := range []string{"place", ""} {
		if place, err := restored.TakeLogged([]byte("claim")); err != nil || string(place) != want {
			t.Errorf("%d: place %q, want %q (%v)", i, place, want, err)
		}
	}
}

// TestI11WhatIsWrittenWithoutALogIsNotInIt: a state that was opened without its log has changes, perhaps, that the log
// never gets.
func TestI11WhatIsWrittenWithoutALogIsNotInIt(t *testing.T) {
	dir := t.TempDir()
	s, _ := journaled(t, dir)
	_, err := s.TakeLogged([]byte("claim"))
	must(t, err)
	must(t, s.SetLogged([]byte("place")))
	must(t, s.Close())
	for _, want := range []string{"place", ""} {
		led, found, err := LedAt(t.Context(), dir, Options{Logger: quiet()})
		if err != nil || !found || string(led.Claim) != "claim" || string(led.Logged) != want {
			t.Errorf("the directory is led at %+v, %t, %v; the log had all at %q", led, found, err, want)
		}
		without, err := Open(t.Context(), dir, Options{Logger: quiet()})
		must(t, err)
		must(t, without.Close())
	}
}
