package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/saved"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/ha/statelog"
	"github.com/kubecdc/kubecdc/internal/observe/telemetry"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/deadletter"
)

// LoggedState is a state, and the log of it that holds it, nil where that is a directory.
type LoggedState struct {
	*control.State
	Log *statelog.Found `json:"log,omitempty"`
}

// ReadLog reads the log of the state that is configured, and changes nothing.
func ReadLog(ctx context.Context, to cluster.Access, cfg *config.Config) (*LoggedState, error) {
	found, err := findLogged(ctx, to, cfg)
	if err != nil {
		return nil, err
	}
	return ReadFound(ctx, found)
}

// ReadFound reads what was found in the log of the state.
func ReadFound(ctx context.Context, found *statelog.Found) (state *LoggedState, err error) {
	dir, err := os.MkdirTemp("", "kubecdc-state-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := fill(ctx, dir, found, &letterFiles{dir: dir + "/deadletters"}, slog.New(slog.DiscardHandler)); err != nil {
		return nil, err
	}
	read, err := saved.ReadDir(ctx, dir)
	return &LoggedState{read, found}, err
}

// Restore fills an empty state directory from the log of the state. Whoever writes the log goes on.
func Restore(ctx context.Context, to cluster.Access, cfg *config.Config) (*statelog.Found, error) {
	found, err := findLogged(ctx, to, cfg)
	if err != nil {
		return nil, err
	}
	if err := fill(ctx, cfg.State.Dir, found, lettersOf(cfg), slog.New(slog.DiscardHandler)); err != nil {
		return nil, saved.Explain(err)
	}
	return found, nil
}

// findLogged looks for the state in the log. The cluster is not asked for anything.
func findLogged(ctx context.Context, to cluster.Access, cfg *config.Config) (*statelog.Found, error) {
	cluster.NewLogger(io.Discard, cfg.Log)
	if cfg.State.Log == nil {
		return nil, usage.Errorf("state.log is missing: the configuration names no log of the state")
	}
	c := &cluster.Cluster{Name: cfg.Cluster}
	if c.Name == "" {
		var err error
		if c, err = cluster.Find(ctx, to, cfg); err != nil {
			return nil, err
		}
	}
	place, err := LogPlace(cfg, c, func(string, error) {})
	if err != nil {
		return nil, err
	}
	return statelog.Look(ctx, place, statelog.Bid{Of: statelog.Identity{Cluster: c.Name}})
}

// StateLog is the log of the state of one run.
type StateLog struct {
	cfg     *config.Config
	cluster *cluster.Cluster
	as      statelog.Claimant
	cut     func(error)       // ends the term, which is lost
	claimed *statelog.Claimed // until it is written; nil is that it becomes ours later
	queue   *statelog.Queue
	place   statelog.Place
	logger  *slog.Logger
	log     *statelog.Log // nil before the state is open
	letters *letterFiles

	mu      sync.Mutex // guards the following
	trouble telemetry.Trouble
	failed  time.Time // when it began to fail; zero while it does not
	told    bool      // that it fails
	fenced  bool
}

// newStateLog is the log of the state of a run, nil where none is configured. Nothing has read it yet.
func newStateLog(cfg *config.Config, c *cluster.Cluster, logger *slog.Logger) (*StateLog, error) {
	if cfg.State.Log == nil {
		return nil, nil
	}
	l := &StateLog{cfg: cfg, cluster: c, queue: statelog.NewQueue(), logger: logger, letters: lettersOf(cfg), cut: func(error) {}}
	var err error
	l.place, err = LogPlace(cfg, c, func(_ string, err error) { l.fail(err) })
	return l, err
}

// bid is the wish to write the log, of whatever instance of the state.
func (l *StateLog) bid() statelog.Bid {
	return statelog.Bid{Of: statelog.Identity{Cluster: l.cluster.Name, UID: l.cluster.UID}, As: l.as}
}

// claimBy becomes the writer of the log. It waits as long as the broker does not answer: to begin without the log would
// be a gap. What only time mends is tried again.
func (l *StateLog) claimBy(ctx context.Context, how func(context.Context) (*statelog.Claimed, error)) error {
	for {
		claimed, err := how(ctx)
		if err == nil {
			l.claimed = claimed
			l.recovered()
			return nil
		}
		if ctx.Err() != nil || IsForGood(err) {
			return err
		}
		l.fail(err)
		sink.Pause(ctx, time.Second, nil)
	}
}

// GiveUp lets go of a log that was claimed, and that nobody writes.
func (l *StateLog) GiveUp(ctx context.Context) error {
	if l == nil || l.claimed == nil {
		return nil
	}
	return l.claimed.Close(context.WithoutCancel(ctx))
}

// fill makes the directory a state, which the log has.
func fill(ctx context.Context, dir string, found *statelog.Found, letters *letterFiles, logger *slog.Logger) error {
	// An opening that is given up goes on in Pebble, which ends the process if the directory is removed meanwhile.
	r, err := checkpoint.Restore(context.WithoutCancel(ctx), dir, checkpoint.Options{Logger: logger})
	if err != nil {
		return err
	}
	place, err := found.Into(ctx, r.Apply)
	if err == nil {
		err = r.Finish(place, letters.putBack)
	}
	return errors.Join(err, r.Close())
}

// Attach makes it the log of the open state, before anything changes there.
func (l *StateLog) Attach(store *checkpoint.Store) (err error) {
	if l == nil {
		return nil
	}
	l.log, err = statelog.New(statelog.Options{
		Place: l.place, As: l.as, Claimed: l.claimed, Store: store, Queue: l.queue, Files: l.letters.names, File: l.letters.read, Failed: l.fail, Written: l.recovered,
	})
	return err
}

// Journal is what the state is opened with.
func (l *StateLog) Journal() checkpoint.Journal {
	if l == nil {
		return nil
	}
	return l.queue
}

// stateLogStop is how long a stop waits for the log.
const stateLogStop = 5 * time.Second

// Run writes the log until the returned stop, which waits until everything is written.
func (l *StateLog) Run(ctx context.Context, of statelog.Identity) (stop func()) {
	if l == nil {
		return func() {}
	}
	l.log.Of, l.claimed = of, nil
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go l.log.Run(running)
	return func() {
		bounded, release := context.WithTimeout(running, stateLogStop)
		defer release()
		l.log.Finish(bounded)
		cancel()
		l.log.Wait()
		if lag := l.queue.Lag(); lag > 0 {
			l.logger.Warn("the log of the state lacks the newest changes; they are in the state directory, and go there with the next start", "log", l.place.Name)
		}
	}
}

// patientRetries is how long a log may fail before a person is told.
const patientRetries = 10 * time.Second

// fail notes why the log cannot be written.
func (l *StateLog) fail(err error) {
	fenced := sink.IsFenced(err)
	l.mu.Lock()
	l.trouble, l.fenced = telemetry.TroubleOf(err), l.fenced || fenced
	if l.failed.IsZero() {
		l.failed = time.Now()
	}
	tell := !l.told && (IsForGood(err) || time.Since(l.failed) >= patientRetries)
	l.told = l.told || tell
	l.mu.Unlock()
	if tell {
		l.logger.Error("the log of the state is unavailable; a lost state directory would be a gap meanwhile", "log", l.place.Name, "error", err)
	}
	if fenced {
		l.cut(err)
	}
}

// IsForGood says whether only a person can help.
func IsForGood(err error) bool {
	return statelog.IsForGood(err) || errors.As(err, new(*sink.PermanentError))
}

// failing is since when the log cannot be written; zero is that it can.
func (l *StateLog) failing() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// recovered notes that the log is written.
func (l *StateLog) recovered() {
	l.mu.Lock()
	told := l.told
	l.trouble, l.failed, l.told = telemetry.Trouble{}, time.Time{}, false
	l.mu.Unlock()
	if told {
		l.logger.Info("the log of the state is available again", "log", l.place.Name)
	}
}

// Status is how it stands; nil is no log.
func (l *StateLog) Status() func() telemetry.StateLog {
	if l == nil {
		return nil
	}
	return func() telemetry.StateLog {
		lag := l.queue.Lag().Seconds()
		l.mu.Lock()
		defer l.mu.Unlock()
		return telemetry.StateLog{LagSeconds: lag, Fenced: l.fenced, Trouble: l.trouble}
	}
}

// Changed notes for the log that a file of a sink has changed.
func (l *StateLog) Changed(sinkName string) func(string) {
	if l == nil {
		return nil
	}
	return func(file string) {
		name := sinkName + "/" + filepath.ToSlash(file)
		content, err := l.letters.read(name)
		if err != nil {
			l.fail(fmt.Errorf("read dead letter %s: %w", name, err))
			return
		}
		key := checkpoint.FileKey(name)
		if content == nil {
			l.queue.Record(checkpoint.Changes{}.Remove(key))
			return
		}
		l.queue.Record(checkpoint.Changes{}.Set(key, content))
	}
}

// letterFiles are the files of all dead letters, by names that begin with the sink's.
type letterFiles struct {
	dir  string            // of the sinks that have none of their own
	dirs map[string]string // by sink
}

func lettersOf(cfg *config.Config) *letterFiles {
	f := &letterFiles{dir: deadletter.DirOf(cfg.State.Dir), dirs: map[string]string{}}
	for _, s := range cfg.Sinks {
		if s.DeadLetter.Dir != "" {
			f.dirs[s.Name] = s.DeadLetter.Dir
		}
	}
	return f
}

// of is the sink's directory, and the file's name there.
func (f *letterFiles) of(name string) (*deadletter.Dir, string) {
	sinkName, file, _ := strings.Cut(name, "/")
	dir := cmp.Or(f.dirs[sinkName], f.dir)
	return deadletter.New(deadletter.Options{Dir: filepath.Join(dir, sinkName), Sink: sinkName}), file
}

// names are those of all files.
func (f *letterFiles) names() (all []string, err error) {
	var sinks []string
	for _, dir := range append([]string{f.dir}, slices.Sorted(maps.Values(f.dirs))...) {
		some, err := deadletter.Sinks(dir)
		if err != nil {
			return nil, err
		}
		sinks = append(sinks, some...)
	}
	slices.Sort(sinks)
	for _, name := range slices.Compact(sinks) {
		dir, _ := f.of(name)
		files, err := dir.Files()
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			all = append(all, name+"/"+filepath.ToSlash(file))
		}
	}
	return all, nil
}

// clear removes all files: those that count are put back.
func (f *letterFiles) clear() error {
	names, err := f.names()
	for _, name := range names {
		dir, file := f.of(name)
		err = errors.Join(err, dir.Remove(file))
	}
	return err
}

func (f *letterFiles) read(name string) ([]byte, error) {
	dir, file := f.of(name)
	return dir.Read(file)
}

func (f *letterFiles) putBack(name string, content []byte) error {
	dir, file := f.of(name)
	return dir.PutBack(file, content)
}
