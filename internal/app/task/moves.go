package task

import (
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

	"github.com/kubecdc/kubecdc/internal/app/background"
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

// Moves are those to one task. It outlives the task's terms, each of which begins with Begin.
type Moves struct {
	cfg    *config.Config
	logger *slog.Logger
	// Needs has a task done that there is no more, by whoever is first: it has something that is to be given away.
	needs func(task int)

	// Of the present term.
	cluster *cluster.Cluster
	store   *checkpoint.Store
	again   func(error)

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

// errTaken says that a term ends to begin with what another task has put aside.
var errTaken = errors.New("another task has given something to this one")

// Begin takes what is there before the sinks are opened, and leaves out of what is chosen what has to wait.
func (m *Moves) Begin(ctx context.Context, c *cluster.Cluster, store *checkpoint.Store, of *Term) error {
	if m.cfg.Task.Count == 0 {
		was, err := store.IsOfTasks()
		if was {
			err = usage.Errorf("tasks: the state is of one of several tasks, and the configuration has none: " +
				"write tasks: 1, so that this exporter takes over what the others have")
		}
		return err
	}
	if err := store.OfTasks(); err != nil {
		return err
	}
	m.cluster, m.store, m.again = c, store, of.again
	own, err := store.Holding()
	if err != nil {
		return err
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
		if _, err := m.look(ctx, true); err != nil {
			m.warnUnread(err)
		}
	}
	if own, err = store.Holding(); err != nil {
		return err
	}
	if len(own.Half) > 0 { // what some sinks have must not be told as left
		return fmt.Errorf("take %s over from another task: not all sinks have it yet", strings.Join(slices.Sorted(maps.Keys(own.Half)), ", "))
	}
	m.narrow()
	return nil
}

// narrow leaves to others what is not admitted yet.
func (m *Moves) narrow() {
	now := *m.cluster.Chosen.Load()
	all := now.Streams
	now.Streams = nil
	for _, s := range all {
		name := s.Stream.Resource.String()
		if m.Admits(name) {
			now.Streams = append(now.Streams, s)
			continue
		}
		now.Others = append(slices.Clone(now.Others), s)
		now.Left = append(slices.Clone(now.Left), source.LeftOut{Name: name, Reason: "another task has to give it away first"})
	}
	m.cluster.Chosen.Store(&now)
}

// Admits says whether the task may follow the resource. If not, it is found out what is to be waited for. One that the
// configuration has alone may follow all.
func (m *Moves) Admits(resource string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cfg.Task.Count == 0 || m.admitted[resource] {
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

// Run looks again for as long as something waits, until the returned stop. What can be taken ends the term. nudge is
// called when a resource that waited may begin.
func (m *Moves) Run(ctx context.Context, nudge func()) (stop func()) {
	if m.cfg.Task.Count == 0 {
		return func() {}
	}
	return background.Run(ctx, func(ctx context.Context) { m.run(ctx, nudge) })
}

func (m *Moves) run(ctx context.Context, nudge func()) {
	for {
		m.mu.Lock()
		isDue := time.Since(m.looked) > lookAnyway || len(m.waits) > 0
		m.mu.Unlock()
		if !isDue {
			select {
			case <-m.asked:
			case <-time.After(lookAnyway):
			case <-ctx.Done():
				return
			}
			continue
		}
		pause := lookAgain
		takes, err := m.look(ctx, false)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			pause = lookLater
			m.warnUnread(err)
		case takes:
			m.mu.Lock()
			m.takes = true
			m.mu.Unlock()
			m.again(errTaken)
			return
		}
		nudge()
		if !sink.Pause(ctx, pause, nil) {
			return
		}
	}
}

func (m *Moves) warnUnread(err error) {
	m.logger.Warn("the logs of other tasks cannot be read; resources that they may have had wait", "error", err)
}

// look reads the logs of all others, and admits what nobody has. With take it takes what was given to this task;
// without, takes says that there is something.
func (m *Moves) look(ctx context.Context, take bool) (takes bool, err error) {
	states, done, err := m.read(ctx)
	defer func() { err = errors.Join(err, done()) }()
	if err != nil {
		return false, err
	}
	all := map[int]checkpoint.Holding{}
	for task, store := range states {
		if all[task], err = store.Holding(); err != nil {
			return false, err
		}
		if task != m.cfg.Task.Number {
			if err := m.store.AdoptHistories(store); err != nil {
				return false, err
			}
		}
	}
	for resource := range m.concerned(all) {
		step := Decide(m.cfg.Task.Number, resource, m.cfg.SinkNames(), all)
		switch {
		case step.Wait != 0:
			m.await(resource, step.Wait)
		case len(step.Take) > 0 && !take:
			takes = true
		default:
			if err := m.take(resource, &step, states); err != nil {
				return false, err
			}
			m.admit(resource)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.looked, m.takes = time.Now(), false
	return takes, nil
}

// concerned are the resources that wait, and those that somebody has given to this task.
func (m *Moves) concerned(all map[int]checkpoint.Holding) map[string]bool {
	names := map[string]bool{}
	m.mu.Lock()
	for name := range m.waits {
		names[name] = true
	}
	m.mu.Unlock()
	for name := range all[m.cfg.Task.Number].Half {
		names[name] = true
	}
	for task, of := range all {
		if len(of.Has) > 0 && task > m.cfg.Task.Count { // it has what nobody may be waiting for
			m.needs(task)
		}
		for key, gift := range of.Gifts {
			if gift.To == m.cfg.Task.Number && all[gift.To].Taken[key][task] < gift.Number {
				names[key.Resource] = true
			}
		}
	}
	return names
}

func (m *Moves) await(resource string, task int) {
	m.mu.Lock()
	before, known := m.waits[resource]
	m.waits[resource] = task
	m.mu.Unlock()
	if !known || before != task {
		m.logger.Info("resource waits until another task has given it away", "resource", resource, "task", task)
	}
	if task > m.cfg.Task.Count {
		m.needs(task)
	}
}

func (m *Moves) admit(resource string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.admitted[resource] = true
	delete(m.waits, resource)
}

// take takes the resource from the states of those who gave it.
func (m *Moves) take(resource string, step *Step, states map[int]*checkpoint.Store) error {
	if err := m.store.BeginTaking(resource); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(step.Take)) {
		giver, of := step.Take[name], checkpoint.Key{Sink: name, Resource: resource}
		same, err := m.store.SharesHistories(states[giver])
		if err != nil {
			return err
		}
		if !same {
			m.logger.Warn("the cluster was rebuilt since the tasks have shared anything; the resource begins anew", "resource", resource, "sink", name)
		}
		gift := step.gifts[name]
		mark, err := m.markWith(name, resource, sink.Mark(gift.Mark))
		if err == nil {
			err = m.store.Take(states[giver], checkpoint.Taking{Giver: giver, Of: of, Gift: gift, Mark: string(mark), Empty: !same})
		}
		if err != nil {
			return fmt.Errorf("take %s over from task %d: %w", resource, giver, err)
		}
		m.logger.Info("resource taken over from another task", "resource", resource, "sink", name, "task", giver)
	}
	return m.store.EndTaking(resource)
}

// markWith is the sink's saved mark with what the giver's says of the resource's place in the log.
func (m *Moves) markWith(name, resource string, given sink.Mark) (sink.Mark, error) {
	marks, err := m.store.Marks()
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(m.cfg.Sinks, func(s config.Sink) bool { return s.Name == name })
	return destination.MarkWith(&m.cfg.Sinks[at], m.cluster, destination.Moved{Mark: marks[name], Given: given, Resource: resource})
}

// farthest is how many numbers in a row, behind those of the configuration, are without a log behind the last task that
// there ever was.
const farthest = 8

// read reads the states of all tasks that have a log, into a directory that done removes.
func (m *Moves) read(ctx context.Context) (states map[int]*checkpoint.Store, done func() error, err error) {
	states = map[int]*checkpoint.Store{m.cfg.Task.Number: m.store}
	dir := filepath.Join(m.cfg.State.Dir, "moving")
	done = func() (err error) {
		for task, store := range states {
			if task != m.cfg.Task.Number {
				err = errors.Join(err, store.Close())
			}
		}
		return errors.Join(err, os.RemoveAll(dir))
	}
	if err := os.RemoveAll(dir); err != nil { // of an earlier process
		return states, done, err
	}
	first := strings.TrimSuffix(m.cfg.State.Log.Name, m.cfg.Task.After("_"))
	for number, last := 1, m.cfg.Task.Count; number <= last+farthest; number++ {
		other := config.Task{Number: number}
		if number == m.cfg.Task.Number {
			continue
		}
		store, err := m.readOne(ctx, first+other.After("_"), filepath.Join(dir, fmt.Sprint(number)))
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
func (m *Moves) readOne(ctx context.Context, log, dir string) (*checkpoint.Store, error) {
	cfg := *m.cfg
	cfg.State.Log = new(*m.cfg.State.Log)
	cfg.State.Log.Name = log
	place, err := LogPlace(&cfg, m.cluster, func(string, error) {})
	if err != nil {
		return nil, err
	}
	found, err := statelog.Look(ctx, place, statelog.Bid{Of: statelog.Identity{Cluster: m.cluster.Name}})
	if errors.Is(err, statelog.ErrNothing) {
		return nil, nil
	}
	if err == nil {
		err = fill(ctx, dir, found, &letterFiles{dir: dir + "-letters"}, m.logger)
	}
	if err != nil {
		return nil, err
	}
	return checkpoint.Open(context.WithoutCancel(ctx), dir, checkpoint.Options{ReadOnly: true, Logger: m.logger}) // as in fill
}
