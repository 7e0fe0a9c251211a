package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/internal/app/beside"
	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/checkpoint/disk"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/ha/statelog"
	"github.com/kubecdc/kubecdc/internal/observe/telemetry"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// errCutOff says that the broker of the log did not answer, so that others should try to lead.
var errCutOff = errors.New("the broker with the log of the state does not answer")

// Begin makes the directory the state that a run of an exporter begins with. Of one that is alone, a directory without
// a state is filled from the log.
func (l *StateLog) Begin(ctx context.Context, of *Term) error {
	if l == nil {
		return nil
	}
	if of.standby != nil {
		return l.takeOver(ctx, of)
	}
	_, found, err := checkpoint.LedAt(ctx, l.cfg.State.Dir, checkpoint.Options{Logger: l.logger})
	if err != nil || found {
		return err
	}
	l.logger.Info("there is no state; reading its log", "dir", l.cfg.State.Dir, "log", l.place.Name)
	err = l.claimBy(ctx, func(ctx context.Context) (*statelog.Claimed, error) { return statelog.Claim(ctx, l.place, l.bid()) })
	if err != nil {
		return fmt.Errorf("restore the state in %s: %w", l.cfg.State.Dir, err)
	}
	return l.restore(ctx)
}

// takeOver becomes the only writer of the log, which fences whoever led before, and makes the directory what the leader
// goes on from.
//
// The directory is newer than the log, by what was saved last and by what is spooled, if it is this member's own state
// and nobody else has led since. Otherwise the log is newer, and the directory counts only as a copy of the log: what
// it has beyond that, others have delivered without knowing it (I11).
func (l *StateLog) takeOver(ctx context.Context, of *Term) error {
	l.as, l.cut = of.standby.as, of.end
	bounded, cancel := context.WithTimeoutCause(ctx, of.patience(), errCutOff)
	defer cancel()
	bid := l.bid()
	bid.Judge = JudgeOf(bounded, l.cluster, l.as.Lease)
	err := l.claimBy(bounded, func(ctx context.Context) (*statelog.Claimed, error) { return of.standby.follower.Claim(ctx, bid) })
	if err != nil {
		if ctx.Err() == nil && errors.Is(context.Cause(bounded), errCutOff) {
			err = fmt.Errorf("%w within %s: %w", errCutOff, of.patience(), err)
		}
		return fmt.Errorf("take over: %w", err)
	}
	if of.standby.copy.IsState() {
		return l.goOnFromState(ctx, of.standby.copy)
	}
	return l.goOnFromCopy(ctx, of.standby.copy)
}

// goOnFromState goes on from a directory that this member has led with.
func (l *StateLog) goOnFromState(ctx context.Context, state *checkpoint.Copy) error {
	if err := state.Close(); err != nil {
		return err
	}
	led, found, err := checkpoint.LedAt(ctx, l.cfg.State.Dir, checkpoint.Options{Logger: l.logger})
	switch {
	case errors.As(err, new(*checkpoint.DamagedError)):
		l.logger.Warn("the state directory is damaged; its log takes its place", "error", err)
	case err != nil, found && l.claimed.IsNewest(led):
		return err
	}
	if _, err := l.claimed.Found(); errors.Is(err, statelog.ErrNothing) {
		l.logger.Info("the log of the state is empty; the state directory counts", "log", l.place.Name, "dir", l.cfg.State.Dir)
		return nil
	}
	return l.restoreAnew(ctx)
}

// goOnFromCopy makes the copy the state, if it has all that the log has. Of a log that has lost everything, a whole
// copy is an earlier state.
func (l *StateLog) goOnFromCopy(ctx context.Context, copied *checkpoint.Copy) error {
	began := time.Now()
	found, err := l.claimed.Found()
	var place []byte
	switch {
	case copied.Place() == nil:
	case errors.Is(err, statelog.ErrNothing):
		l.logger.Info("the log of the state is empty; the copy of it counts", "log", l.place.Name, "dir", l.cfg.State.Dir)
		return l.finish(copied, nil)
	case err == nil:
		place = found.End()
	}
	if place == nil || !bytes.Equal(place, copied.Place()) {
		return errors.Join(copied.Close(), l.restoreAnew(ctx))
	}
	if err := l.finish(copied, place); err != nil {
		return err
	}
	l.logger.Info("the copy of the log of the state has all of it", "dir", l.cfg.State.Dir, "log", l.place.Name, "saved", found.Saved,
		"took", time.Since(began).Round(time.Millisecond))
	return nil
}

func (l *StateLog) finish(copied *checkpoint.Copy, place []byte) error {
	err := l.letters.clear()
	if err == nil {
		err = copied.Finish(place, l.letters.putBack)
	}
	if err != nil {
		return fmt.Errorf("make the copy of the log of the state in %s a state: %w", l.cfg.State.Dir, err)
	}
	return nil
}

// restoreAnew makes the directory what the log has, whatever it was.
func (l *StateLog) restoreAnew(ctx context.Context) error {
	if err := checkpoint.Discard(l.cfg.State.Dir); err != nil && !errors.Is(err, checkpoint.ErrNoState) {
		return err
	}
	if _, err := l.claimed.Found(); err == nil {
		if err := l.letters.clear(); err != nil {
			return err
		}
	}
	return l.restore(ctx)
}

// Term is the time in which this member leads a task. The zero value is that of an exporter alone, which ends with the
// process.
type Term struct {
	Over   context.Context             // ends when another member delivers what this one has not; nil is never
	Status func() telemetry.Leadership // who leads; nil of an exporter alone

	standby  *standby          // as what this member waited
	duration time.Duration     // of the Lease
	end      func(cause error) // ends it
	again    func(cause error) // ends it when everything in line is delivered; another one follows
	cutOff   *cutOff
}

// patience is how long the brokers may take to let this member lead.
func (t *Term) patience() time.Duration { return max(t.duration, 10*time.Second) }

// Log is the log of the state of a run, which a member that leads has followed already. It is nil where none is
// configured.
func (t *Term) Log(cfg *config.Config, c *cluster.Cluster, logger *slog.Logger) (*StateLog, error) {
	if t.standby == nil {
		return newStateLog(cfg, c, logger)
	}
	return t.standby.log, nil
}

// Prove is how this member proves that it still leads, once the log is attached; nil is that nobody else could lead.
func (t *Term) Prove(log *StateLog) func(context.Context) error {
	if t.standby == nil {
		return nil
	}
	return log.log.Prove
}

// Observe ends the term when a sink says that it is another's.
func (t *Term) Observe(o pipeline.Observer) pipeline.Observer {
	told := o.Stopped
	o.Stopped = func(name string, err error) {
		told(name, err)
		if t.end != nil && isFenced(err) {
			t.end(err)
		}
	}
	return o
}

// Watch ends the term where this member reaches no broker and another one does, until the returned stop. sinks is since
// when no sink takes records, zero while one does.
func (t *Term) Watch(ctx context.Context, log *StateLog, sinks func() time.Time) (stop func()) {
	if t.cutOff == nil {
		return func() {}
	}
	t.cutOff.failing = func() time.Time { // the earlier of both
		since := sinks()
		if logs := log.failing(); since.IsZero() || !logs.IsZero() && logs.Before(since) {
			return logs
		}
		return since
	}
	return beside.Run(ctx, func(ctx context.Context) {
		if why := t.cutOff.watch(ctx); why != nil {
			t.end(why)
		}
	})
}

// isFenced says whether another exporter has taken over what this one wrote to.
func isFenced(err error) bool {
	switch e := err.(type) {
	case nil:
		return false
	case *sink.PermanentError:
		return e.Fenced || isFenced(e.Err)
	case interface{ Unwrap() []error }: // several sinks
		return slices.ContainsFunc(e.Unwrap(), isFenced)
	}
	return isFenced(errors.Unwrap(err))
}

// standby follows the log of the state into this member's directory, so that a takeover reads only what came since.
type standby struct {
	log      *StateLog
	copy     *checkpoint.Copy
	follower *statelog.Follower
	logger   *slog.Logger
	as       statelog.Claimant     // this member
	respond  func(context.Context) // answers a leader that asks; nil answers nobody

	mu      sync.Mutex // guards the following
	current time.Time  // when the copy had all that the log had then; before that, when this member began to wait
	whole   bool       // it has had all, once
	trouble telemetry.Trouble
	told    bool // that it is behind
}

// How long a standby waits between two looks at the log, after an error, and after one that only a person can mend.
const (
	standbyPace    = 250 * time.Millisecond
	standbyAgain   = 2 * time.Second
	standbyRefused = 30 * time.Second
)

// newStandby takes the state directory.
func newStandby(ctx context.Context, log *StateLog, as statelog.Claimant) (*standby, error) {
	b := &standby{log: log, logger: log.logger, as: as, current: time.Now()}
	var err error
	if b.copy, err = checkpoint.OpenCopy(ctx, log.cfg.State.Dir, checkpoint.Options{Logger: log.logger}); err != nil {
		return nil, err
	}
	// The directory is newer than the log if it is this member's own state, and nobody else of its task has led since.
	// A copy never is, even where this member was the last to claim the log.
	keep := func(last statelog.Claimant) bool {
		isOurs := last.Lease == "" || last.Lease == b.as.Lease
		return b.copy.IsState() && (last.Member == b.as.Member || !isOurs)
	}
	b.follower = &statelog.Follower{
		Place: log.place, Of: statelog.Identity{Cluster: log.cluster.Name, UID: log.cluster.UID}, Copy: b.copy, Keep: keep,
	}
	return b, nil
}

// lastStep is how long the last look at the log may stand still. One that is cut off has to be begun anew.
const lastStep = 2 * time.Second

// follow follows the log until the returned function is called.
func (s *standby) follow(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			began := time.Now()
			err := s.follower.Step(ctx)
			wait := s.note(ctx, began, err)
			if err == nil && s.respond != nil {
				s.respond(ctx)
			}
			select {
			case <-time.After(wait):
			case <-over:
				return
			case <-ctx.Done():
			}
		}
	}()
	return func() {
		defer cancel()
		close(over)
		s.awaitLast(done)
		cancel()
		<-done
	}
}

// awaitLast waits for the end of the last look as long as that gets on.
func (s *standby) awaitLast(done <-chan struct{}) {
	for {
		before := s.follower.Parts()
		select {
		case <-done:
			return
		case <-time.After(lastStep):
		}
		if s.follower.Parts() == before {
			return
		}
	}
}

// close lets go of the log and of the directory. A second call does nothing.
func (s *standby) close() error {
	s.follower.Close()
	return s.copy.Close()
}

// note notes how a look at the log ended, and says when the next one is due.
func (s *standby) note(ctx context.Context, began time.Time, err error) (wait time.Duration) {
	switch {
	case err == nil:
		s.mu.Lock()
		told := s.told
		s.current, s.whole, s.trouble, s.told = began, true, telemetry.Trouble{}, false
		s.mu.Unlock()
		if told {
			s.logger.Info("this standby follows the log of the state again", "log", s.log.place.Name)
		}
		return standbyPace
	case ctx.Err() != nil:
		return 0
	case errors.As(err, new(*checkpoint.DamagedError)):
		s.logger.Warn("the copy of the log of the state is damaged; it is filled anew", "dir", s.log.cfg.State.Dir, "error", err)
		if err := s.copy.Begin(ctx); err != nil {
			s.fail(err)
		}
		return standbyAgain
	case IsForGood(err), errors.As(err, new(*disk.FullError)):
		wait = standbyRefused
	default:
		wait = standbyAgain
	}
	s.fail(err)
	return wait
}

// standbyPatience is how long a standby may be behind before a person is told.
const standbyPatience = time.Minute

func (s *standby) fail(err error) {
	s.mu.Lock()
	s.trouble = telemetry.TroubleOf(err)
	tell := !s.told && time.Since(s.current) > standbyPatience
	s.told = s.told || tell
	s.mu.Unlock()
	if tell {
		s.logger.Error("this standby cannot follow the log of the state; a takeover takes longer meanwhile", "log", s.log.place.Name, "error", err)
	}
}

// status is how far it is behind.
func (s *standby) status() *telemetry.Standby {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &telemetry.Standby{Whole: s.whole, LagSeconds: time.Since(s.current).Seconds(), Trouble: s.trouble}
}
