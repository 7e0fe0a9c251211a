package election

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestAssignIsBalancedAndMovesNoMoreThanItMust through random members that come, go, and cannot have some tasks.
func TestAssignIsBalancedAndMovesNoMoreThanItMust(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 1))
		tasks := map[string]string{}
		for i := range random.IntN(12) {
			tasks[fmt.Sprint("task-", i)] = ""
		}
		living := map[string]Candidate{}
		for range 12 {
			name := fmt.Sprint("exporter-", random.IntN(5))
			_, lived := living[name]
			if lived && len(living) > 1 {
				delete(living, name)
			} else {
				living[name] = Candidate{Name: name}
			}
			for task, holder := range tasks {
				if _, lives := living[holder]; !lives {
					tasks[task] = ""
				}
			}
			owners := Assign(slices.Collect(maps.Values(living)), tasks)
			load, least, most := map[string]int{}, len(tasks), 0
			for task, holder := range tasks {
				load[owners[task]]++
				if owners[task] == "" {
					t.Fatalf("seed %d: nobody has %s of %v", seed, task, living)
				}
				if holder != "" && owners[task] != holder && (lived || owners[task] != name) {
					t.Fatalf("seed %d: %s went from %s to %s when %s came or went (%v)", seed, task, holder, owners[task], name, lived)
				}
			}
			for name := range living {
				least, most = min(least, load[name]), max(most, load[name])
			}
			if most-least > 1 {
				t.Fatalf("seed %d: %v for %v", seed, owners, living)
			}
			tasks = owners
		}
	}
}

// TestWhoCannotHaveATaskIsNotGivenIt while another one can, and nobody has what nobody can have.
func TestWhoCannotHaveATaskIsNotGivenIt(t *testing.T) {
	candidates := []Candidate{{"a", []string{"1", "2", "3"}}, {"b", []string{"3"}}}
	owners := Assign(candidates, map[string]string{"1": "a", "2": "", "3": "b"})
	if want := map[string]string{"1": "b", "2": "b"}; !maps.Equal(owners, want) {
		t.Errorf("%v, want %v", owners, want)
	}
}

// exporter is one with several tasks, of which it leads those that it holds.
type exporter struct {
	name  string
	cut   atomic.Bool
	leave func()

	mu    sync.Mutex
	leads map[string]context.Context
}

func (s *server) start(t *testing.T, name string, tasks []string) *exporter {
	e := &exporter{name: name, leads: map[string]context.Context{}}
	ctx, cancel := context.WithCancel(t.Context())
	alive, die := context.WithCancel(t.Context())
	p, err := NewPlacement(PlacementOptions{
		Place: Place{"ns", NameOf(Self(name, "1"))}, Self: Self(name, "1"), Duration: duration, Leaving: func() bool { return ctx.Err() != nil },
		Logger: slog.New(slog.DiscardHandler), leases: cable{s, NameOf(Self(name, "1")), &e.cut},
	})
	must(t, err)
	p.SetTasks(tasks)
	var group, last sync.WaitGroup
	last.Go(func() { p.Run(alive) })
	for _, task := range tasks {
		member, err := New(Options{
			Place: Place{"ns", task}, Self: Self(name, "1"), Duration: duration, Logger: slog.New(slog.DiscardHandler), leases: cable{s, task, &e.cut},
			Judge: func(string) error { return nil }, Placer: p.Join,
		})
		must(t, err)
		group.Go(func() { member.Run(ctx) })
		group.Go(func() {
			for ctx.Err() == nil {
				term, end, err := member.Lead(ctx)
				if err != nil {
					return
				}
				e.note(task, term)
				<-term.Done()
				time.Sleep(100 * time.Millisecond) // a clean stop
				e.note(task, nil)
				end()
			}
		})
	}
	e.leave = sync.OnceFunc(func() {
		cancel()
		group.Wait()
		die()
		last.Wait()
	})
	t.Cleanup(e.leave)
	return e
}

func (e *exporter) note(task string, term context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.leads[task] = term; term == nil {
		delete(e.leads, task)
	}
}

func (e *exporter) has() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.leads))
}

// await waits until the exporters have so many tasks each, and returns how long that took.
func await(t *testing.T, most time.Duration, want map[*exporter]int) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		right := true
		for e, n := range want {
			right = right && len(e.has()) == n
		}
		if took := time.Since(began); right {
			return took
		} else if took > most {
			for e, n := range want {
				t.Errorf("%s has %v, want %d", e.name, e.has(), n)
			}
			t.FailNow()
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestTasksFollowTheExportersThatLive: a new one takes its share without moving the others' in two seconds, one that
// stops leaves its own as soon, and those of one that dies go when its Lease is over.
func TestTasksFollowTheExportersThatLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, tasks := newServer(), []string{"t1", "t2", "t3", "t4", "t5", "t6"}
		a := s.start(t, "a", tasks)
		await(t, 2*time.Second, map[*exporter]int{a: 6})
		b := s.start(t, "b", tasks)
		await(t, 2*time.Second, map[*exporter]int{a: 3, b: 3})
		before := a.has()
		c := s.start(t, "c", tasks)
		await(t, 2*time.Second, map[*exporter]int{a: 2, b: 2, c: 2})
		for _, task := range a.has() {
			if !slices.Contains(before, task) {
				t.Errorf("%s moved to a, which had %v", task, before)
			}
		}
		b.leave()
		await(t, 2*time.Second, map[*exporter]int{a: 3, b: 0, c: 3})
		c.cut.Store(true) // which goes on, and learns of it later
		if took := await(t, duration+2*time.Second, map[*exporter]int{a: 6, c: 3}); took < duration/2 {
			t.Errorf("it took %s only", took)
		}
		c.cut.Store(false)
		await(t, 2*time.Second, map[*exporter]int{a: 3, c: 3})
		time.Sleep(time.Hour)
		await(t, 0, map[*exporter]int{a: 3, c: 3})
	})
}

// TestATaskDoesNotWaitForAHolderWithoutASignOfLife, as for one that somebody has removed, or that there never was.
func TestATaskDoesNotWaitForAHolderWithoutASignOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, tasks := newServer(), []string{"t1", "t2"}
		a, b := s.start(t, "a", tasks), s.start(t, "b", tasks)
		await(t, 2*time.Second, map[*exporter]int{a: 1, b: 1})
		b.cut.Store(true)
		s.mu.Lock()
		delete(s.of, NameOf(Self("b", "1")))
		s.mu.Unlock()
		await(t, duration+2*time.Second, map[*exporter]int{a: 2})
	})
}

// TestNoTaskMovesWhileTheAPIServerIsAway: who has one goes on.
func TestNoTaskMovesWhileTheAPIServerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, tasks := newServer(), []string{"t1", "t2"}
		a, b := s.start(t, "a", tasks), s.start(t, "b", tasks)
		await(t, 2*time.Second, map[*exporter]int{a: 1, b: 1})
		a.cut.Store(true)
		b.cut.Store(true)
		before := []string{a.has()[0], b.has()[0]}
		time.Sleep(10 * time.Minute)
		a.cut.Store(false)
		b.cut.Store(false)
		time.Sleep(10 * time.Second)
		if now := []string{a.has()[0], b.has()[0]}; !slices.Equal(now, before) {
			t.Errorf("%v, want %v", now, before)
		}
	})
}

// TestASlowAPIServerMovesTheTasksOfTheDeadAndNoOthers: an answer may take nearly as long as a request may.
func TestASlowAPIServerMovesTheTasksOfTheDeadAndNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, tasks := newServer(), []string{"t1", "t2"}
		a, b := s.start(t, "a", tasks), s.start(t, "b", tasks)
		await(t, 2*time.Second, map[*exporter]int{a: 1, b: 1})
		before := []string{a.has()[0], b.has()[0]}
		s.takes.Store(int64(ofLength(duration) * 9 / 10))
		for range 600 {
			time.Sleep(time.Second)
			if now := slices.Concat(a.has(), b.has()); !slices.Equal(now, before) {
				t.Fatalf("%v, want %v", now, before)
			}
		}
		b.cut.Store(true)
		await(t, 10*duration, map[*exporter]int{a: 2})
	})
}

// TestLeasesAreWrittenByExportersNotByTasks: what a task costs is a write a minute.
func TestLeasesAreWrittenByExportersNotByTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		var tasks []string
		for i := range 50 {
			tasks = append(tasks, fmt.Sprint("t", i))
		}
		a := s.start(t, "a", tasks)
		await(t, 2*time.Second, map[*exporter]int{a: 50})
		count := func() (member, task int) {
			for _, name := range tasks {
				task += s.written(name)
			}
			return s.written(NameOf(Self("a", "1"))), task
		}
		member, task := count()
		time.Sleep(10 * time.Minute)
		members, of := count()
		if members -= member; members > 10*60/2+10 {
			t.Errorf("the exporter's own Lease was written %d times in ten minutes", members)
		}
		if of -= task; of > 50*11 {
			t.Errorf("those of 50 tasks were written %d times in ten minutes", of)
		}
	})
}
