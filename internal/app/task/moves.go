package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/internal/app/beside"
	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/destination"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/ha/statelog"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/source"
)

// A resource goes to another task when the number of tasks changes. Who had it puts aside what it has, once each sink
// is open and nothing more comes (listener.Listener); the log of its state says so. Who is to have it looks into the
// logs of all others before it begins, and takes that over. So there is one at a time, whatever configuration each of
// the exporters has, and whichever of them dies. Only a resource that is new while they differ may begin in two tasks.

// Step is what is to be done about a resource of which a task has nothing.
type Step struct {
	Wait  int            // for this task: it has the resource, or is to take it; 0 is for none
	Take  map[string]int // by sink: from this task
	gifts map[string]checkpoint.Gift
}

// Decide is the step of the task for the resource in the sinks, by what the states of all tasks have, its own among
// them. It is a pure function.
func Decide(task int, resource string, sinks []string, all map[int]checkpoint.Holding) Step {
	step := Step{Take: map[string]int{}, gifts: map[string]checkpoint.Gift{}}
	for _, name := range sinks {
		of := checkpoint.Key{Sink: name, Resource: resource}
		for _, other := range slices.Sorted(maps.Keys(all)) {
			gift, given := all[other].Gifts[of]
			taken := given && all[gift.To].Taken[of][other] >= gift.Number
			switch {
			case other == task:
				if given && !taken { // it gave it away, and nobody has it yet
					step.Wait = gift.To
				}
			case given && !taken && gift.To == task:
				step.Take[name], step.gifts[name] = other, gift
			case given && !taken:
				step.Wait = gift.To
			case all[other].Has[of]:
				step.Wait = other
			}
		}
	}
	return step
}

// Moves are those to one task. It outlives the task's terms.
type Moves struct {
	cfg    *config.Config
	logger *slog.Logger
	// Needs has a task done that there is no more, by whoever is first: it has something that is to be given away.
	needs func(task int)

	mu       sync.Mutex // guards the following
	looked   time.Time  // into the logs, in this process
	takes    bool       // the next term is to begin with a look
	admitted map[string]bool
	waits    map[string]int // by resource: for which task
	asked    sink.Bell
}

// NewMoves returns those to the task of the configuration.
func NewMoves(cfg *config.Config, logger *slog.Logger, needs func(task int)) *Moves {
	return &Moves{cfg: cfg, logger: logger, needs: needs, admitted: map[string]bool{}, waits: map[string]int{}, asked: sink.NewBell()}
}

// Moving are the moves in one term.
type Moving struct {
	*Moves
	cluster *cluster.Cluster
	store   *checkpoint.Store
	again   func(error)
}

// errTaken says that a term ends to begin with what another task has put aside.
var errTaken = errors.New("another task has given something to this one")

// Begin takes what is there before the sinks are opened, and leaves out of what is chosen what has to wait.
func (m *Moves) Begin(ctx context.Context, c *cluster.Cluster, store *checkpoint.Store, of *Term) (*Moving, error) {
	if m.cfg.Task.Count == 0 {
		if was, err := store.IsOfTasks(); err != nil || was {
			return nil, cmp.Or(err, usage.Errorf("tasks: the state is of one of several tasks, and the configuration has none: "+
				"write tasks: 1, so that this exporter takes over what the others have"))
		}
		return nil, nil
	}
	if err := store.OfTasks(); err != nil {
		return nil, err
	}
	t := &Moving{Moves: m, cluster: c, store: store, again: of.again}
	own, err := store.Holding()
	if err != nil {
		return nil, err
	}
	c.Holds = func(sinkName, resource string) bool {
		places, err := store.Places(sinkName)
		return err != nil || len(places[sinkName][resource]) > 0
	}
	m.mu.Lock()
	clear(m.admitted)
	for key := range own.Has {
		m.admitted[key.Resource] = !own.Half[key.Resource]
	}
	lacks := m.takes || len(own.Half) > 0
	m.mu.Unlock()
	for _, s := range c.Streams() {
		lacks = !m.Admits(s.Stream.Resource.String()) || lacks // each is asked for
	}
	if lacks {
		if _, err := t.look(ctx, true); err != nil {
			t.warnUnread(err)
		}
	}
	if own, err = store.Holding(); err != nil {
		return nil, err
	}
	if len(own.Half) > 0 { // what some sinks have must not be told as left
		return nil, fmt.Errorf("take %s over from another task: not all sinks have it yet", strings.Join(slices.Sorted(maps.Keys(own.Half)), ", "))
	}
	t.narrow()
	return t, nil
}

// narrow leaves to others what is not admitted yet.
func (t *Moving) narrow() {
	now := *t.cluster.Chosen.Load()
	all := now.Streams
	now.Streams = nil
	for _, s := range all {
		name := s.Stream.Resource.String()
		if t.Admits(name) {
			now.Streams = append(now.Streams, s)
			continue
		}
		now.Others = append(slices.Clone(now.Others), s)
		now.Left = append(slices.Clone(now.Left), source.LeftOut{Name: name, Reason: "another task has to give it away first"})
	}
	t.cluster.Chosen.Store(&now)
}

// Admits says whether the task may follow the resource. If not, it is found out what is to be waited for.
func (m *Moves) Admits(resource string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.admitted[resource] {
		return true
	}
	if _, known := m.waits[resource]; !known {
		m.waits[resource] = 0
		m.asked.Ring()
	}
	return false
}

// How long the moves wait between two looks into the logs of others.
const (
	lookAgain  = 2 * time.Second
	lookLater  = 30 * time.Second // after an error
	lookAnyway = 10 * time.Minute // for what this task is only to pass on
)

// Admission is what says whether the task may follow a resource; nil is that it may follow all.
func (t *Moving) Admission() func(resource string) bool {
	if t == nil {
		return nil
	}
	return t.Admits
}

// Run looks again for as long as something waits, until the returned stop. What can be taken ends the term. nudge is
// called when a resource that waited may begin.
func (t *Moving) Run(ctx context.Context, nudge func()) (stop func()) {
	if t == nil {
		return func() {}
	}
	return beside.Run(ctx, func(ctx context.Context) { t.run(ctx, nudge) })
}

func (t *Moving) run(ctx context.Context, nudge func()) {
	for {
		t.mu.Lock()
		isDue := time.Since(t.looked) > lookAnyway || len(t.waits) > 0
		t.mu.Unlock()
		if !isDue {
			select {
			case <-t.asked:
			case <-time.After(lookAnyway):
			case <-ctx.Done():
				return
			}
			continue
		}
		pause := lookAgain
		takes, err := t.look(ctx, false)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			pause = lookLater
			t.warnUnread(err)
		case takes:
			t.mu.Lock()
			t.takes = true
			t.mu.Unlock()
			t.again(errTaken)
			return
		}
		nudge()
		if !sink.Pause(ctx, pause, nil) {
			return
		}
	}
}

func (t *Moving) warnUnread(err error) {
	t.logger.Warn("the logs of other tasks cannot be read; resources that they may have had wait", "error", err)
}

// look reads the logs of all others, and admits what nobody has. With take it takes what was given to this task;
// without, takes says that there is something.
func (t *Moving) look(ctx context.Context, take bool) (takes bool, err error) {
	states, done, err := t.read(ctx)
	defer func() { err = errors.Join(err, done()) }()
	if err != nil {
		return false, err
	}
	all := map[int]checkpoint.Holding{}
	for task, store := range states {
		if all[task], err = store.Holding(); err != nil {
			return false, err
		}
		if task != t.cfg.Task.Number {
			if err := t.store.AdoptHistories(store); err != nil {
				return false, err
			}
		}
	}
	for resource := range t.concerned(all) {
		step := Decide(t.cfg.Task.Number, resource, t.cfg.SinkNames(), all)
		switch {
		case step.Wait != 0:
			t.await(resource, step.Wait)
		case len(step.Take) > 0 && !take:
			takes = true
		default:
			if err := t.take(resource, &step, states); err != nil {
				return false, err
			}
			t.admit(resource)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.looked, t.takes = time.Now(), false
	return takes, nil
}

// concerned are the resources that wait, and those that somebody has given to this task.
func (t *Moving) concerned(all map[int]checkpoint.Holding) map[string]bool {
	names := map[string]bool{}
	t.mu.Lock()
	for name := range t.waits {
		names[name] = true
	}
	t.mu.Unlock()
	for name := range all[t.cfg.Task.Number].Half {
		names[name] = true
	}
	for task, of := range all {
		if len(of.Has) > 0 && task > t.cfg.Task.Count { // it has what nobody may be waiting for
			t.needs(task)
		}
		for key, gift := range of.Gifts {
			if gift.To == t.cfg.Task.Number && all[gift.To].Taken[key][task] < gift.Number {
				names[key.Resource] = true
			}
		}
	}
	return names
}

func (t *Moving) await(resource string, task int) {
	t.mu.Lock()
	before, known := t.waits[resource]
	t.waits[resource] = task
	t.mu.Unlock()
	if !known || before != task {
		t.logger.Info("resource waits until another task has given it away", "resource", resource, "task", task)
	}
	if task > t.cfg.Task.Count {
		t.needs(task)
	}
}

func (t *Moving) admit(resource string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.admitted[resource] = true
	delete(t.waits, resource)
}

// take takes the resource from the states of those who gave it.
func (t *Moving) take(resource string, step *Step, states map[int]*checkpoint.Store) error {
	if err := t.store.BeginTaking(resource); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(step.Take)) {
		giver, of := step.Take[name], checkpoint.Key{Sink: name, Resource: resource}
		same, err := t.store.SharesHistories(states[giver])
		if err != nil {
			return err
		}
		if !same {
			t.logger.Warn("the cluster was rebuilt since the tasks have shared anything; the resource begins anew", "resource", resource, "sink", name)
		}
		gift := step.gifts[name]
		mark, err := t.markWith(name, resource, sink.Mark(gift.Mark))
		if err == nil {
			err = t.store.Take(states[giver], checkpoint.Taking{Giver: giver, Of: of, Gift: gift, Mark: string(mark), Empty: !same})
		}
		if err != nil {
			return fmt.Errorf("take %s over from task %d: %w", resource, giver, err)
		}
		t.logger.Info("resource taken over from another task", "resource", resource, "sink", name, "task", giver)
	}
	return t.store.EndTaking(resource)
}

// markWith is the sink's saved mark with what the giver's says of the resource's place in the log.
func (t *Moving) markWith(name, resource string, given sink.Mark) (sink.Mark, error) {
	marks, err := t.store.Marks()
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(t.cfg.Sinks, func(s config.Sink) bool { return s.Name == name })
	return destination.MarkWith(&t.cfg.Sinks[at], t.cluster, destination.Moved{Mark: marks[name], Given: given, Resource: resource})
}

// farthest is how many numbers in a row, behind those of the configuration, are without a log behind the last task that
// there ever was.
const farthest = 8

// read reads the states of all tasks that have a log, into a directory that done removes.
func (t *Moving) read(ctx context.Context) (states map[int]*checkpoint.Store, done func() error, err error) {
	states = map[int]*checkpoint.Store{t.cfg.Task.Number: t.store}
	dir := filepath.Join(t.cfg.State.Dir, "moving")
	done = func() (err error) {
		for task, store := range states {
			if task != t.cfg.Task.Number {
				err = errors.Join(err, store.Close())
			}
		}
		return errors.Join(err, os.RemoveAll(dir))
	}
	if err := os.RemoveAll(dir); err != nil { // of an earlier process
		return states, done, err
	}
	first := strings.TrimSuffix(t.cfg.State.Log.Name, t.cfg.Task.After("_"))
	for number, last := 1, t.cfg.Task.Count; number <= last+farthest; number++ {
		other := config.Task{Number: number}
		if number == t.cfg.Task.Number {
			continue
		}
		store, err := t.readOne(ctx, first+other.After("_"), filepath.Join(dir, fmt.Sprint(number)))
		if err != nil {
			return states, done, fmt.Errorf("read the log of the state of task %d: %w", number, err)
		}
		if store != nil {
			states[number], last = store, max(last, number)
		}
	}
	return states, done, nil
}

// readOne is the state that the log has, nil where there is none.
func (t *Moving) readOne(ctx context.Context, log, dir string) (*checkpoint.Store, error) {
	cfg := *t.cfg
	cfg.State.Log = new(*t.cfg.State.Log)
	cfg.State.Log.Name = log
	place, err := LogPlace(&cfg, t.cluster, func(string, error) {})
	if err != nil {
		return nil, err
	}
	found, err := statelog.Look(ctx, place, statelog.Bid{Of: statelog.Identity{Cluster: t.cluster.Name}})
	if errors.Is(err, statelog.ErrNothing) {
		return nil, nil
	}
	if err == nil {
		err = fill(ctx, dir, found, &letterFiles{dir: dir + "-letters"}, slog.New(slog.DiscardHandler))
	}
	if err != nil {
		return nil, err
	}
	return checkpoint.Open(ctx, dir, checkpoint.Options{ReadOnly: true})
}
